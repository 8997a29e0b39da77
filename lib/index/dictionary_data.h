#ifndef KSWEEP_LIB_INDEX_DICTIONARY_DATA_H_
#define KSWEEP_LIB_INDEX_DICTIONARY_DATA_H_

#include <string_view>

namespace ksweep {

// What tools/train_dictionary made, for Dictionary::Unpack().
std::string_view BuiltInDictionaryBytes();

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_DICTIONARY_DATA_H_
