// Pads: kernels built for call padding list `__pfx_X` a few bytes in front of
// nearly every function X. Such a row is folded into one bit of X's record.

#ifndef KSWEEP_LIB_INDEX_FOLD_H_
#define KSWEEP_LIB_INDEX_FOLD_H_

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "lib/index/row.h"

namespace ksweep {

inline constexpr std::string_view kPadPrefix = "__pfx_";

inline bool IsPadName(std::string_view name) {
  return name.size() >= kPadPrefix.size() &&
         std::memcmp(name.data(), kPadPrefix.data(), kPadPrefix.size()) == 0;
}

enum class RowState : uint8_t {
  kPlain,
  kWithPad,  // its pad is folded into it
  kFolded,   // a pad without a record of its own
};

struct Folding {
  // From a pad to its function; 0 if nothing is folded.
  uint32_t distance = 0;
  uint64_t folded = 0;
  std::vector<RowState> states;  // of each row
};

// Decides which of `rows`, ordered by segment and address, are folded: only
// those that MergePads() puts back in the same place, and of each name all or
// none.
Folding FoldPads(absl::Span<const Row> rows);

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_FOLD_H_
