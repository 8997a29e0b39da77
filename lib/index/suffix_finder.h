// Names that end in another name: `__ksymtab_vfs_read`, `__SCT__tp_func_x`.

#ifndef KSWEEP_LIB_INDEX_SUFFIX_FINDER_H_
#define KSWEEP_LIB_INDEX_SUFFIX_FINDER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"

namespace ksweep {

// A set of names, each with a number, in which all ends of a name are looked up
// at once.
class SuffixFinder {
 public:
  // For at most `names` names.
  explicit SuffixFinder(size_t names);

  // Does nothing for a name that is there. The bytes have to stay.
  void Add(std::string_view name, uint32_t number);

  // Calls `accept` for `name` itself and every end of it that follows a `_`, if
  // it is in the set, with where it starts and its number; the longest first,
  // until it returns true.
  void Find(std::string_view name,
            absl::FunctionRef<bool(size_t start, uint32_t number)> accept);

 private:
  struct Entry {
    std::string_view name;
    uint32_t number = 0;
  };

  bool MayHave(uint64_t hash) const {
    return (filter_[(hash >> 32) / 64 & filter_mask_] >> (hash >> 32) % 64) & 1;
  }
  const Entry* Lookup(uint64_t hash, std::string_view name) const;

  std::vector<Entry> entries_;
  size_t mask_;
  std::vector<uint64_t> filter_;  // one bit for many entries: most are absent
  size_t filter_mask_;
  std::vector<uint64_t> hashes_;  // scratch: of every end of the name
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_SUFFIX_FINDER_H_
