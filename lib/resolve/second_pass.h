// What one pass over the symbols could not know. Each of these reads the text
// again, through the same descriptor; on a usual kernel none is needed.

#ifndef KSWEEP_LIB_RESOLVE_SECOND_PASS_H_
#define KSWEEP_LIB_RESOLVE_SECOND_PASS_H_

#include <cstdint>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "lib/resolve/sweep.h"
#include "lib/source/list_file.h"

namespace ksweep {

// Adds the function symbols that share address and owner with a row but were
// passed before or long after it, because the text is in no order.
absl::Status CompleteAliases(ListFile* kallsyms, SweepResult* result);

// How many function symbols there are of a name, with `.llvm.<hash>` stripped.
class NameCounts {
 public:
  // Counts among the rows, or, if symbols of a row's name may be missing there,
  // in a further pass.
  static absl::StatusOr<NameCounts> Make(ListFile* kallsyms,
                                         const SweepResult& result,
                                         bool rows_are_complete);

  // Of that owner, and over all. `name` is one of a row.
  uint32_t Of(uint32_t owner, std::string_view name) const;
  uint32_t Total(std::string_view name) const;

 private:
  using Key = std::pair<std::string_view, uint32_t>;

  void Add(uint32_t owner, std::string_view name);

  absl::flat_hash_map<Key, uint32_t> by_owner_;
  absl::flat_hash_map<std::string_view, uint32_t> total_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_SECOND_PASS_H_
