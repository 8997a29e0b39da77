#include "lib/index/dictionary_data.h"

namespace ksweep {
namespace {

constexpr char kBytes[] =
#include "lib/index/dictionary_data.inc"
    ;

}  // namespace

std::string_view BuiltInDictionaryBytes() {
  return {kBytes, sizeof(kBytes) - 1};
}

}  // namespace ksweep
