// The symbols of an index in the form of kallsyms.

#ifndef KSWEEP_LIB_RESOLVE_INDEX_TEXT_H_
#define KSWEEP_LIB_RESOLVE_INDEX_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "ksweep/symbol_index.h"

namespace ksweep {

// Lines in the order that kernels have them: the core's by address, then those
// of one module after the other. DataLoss if the index is damaged.
absl::StatusOr<std::string> TextOfIndex(const SymbolIndex& index);

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_INDEX_TEXT_H_
