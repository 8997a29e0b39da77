// The kprobe blacklist: address ranges that a kprobe must not touch.

#ifndef KSWEEP_LIB_SOURCE_BLACKLIST_H_
#define KSWEEP_LIB_SOURCE_BLACKLIST_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/source/list_file.h"

namespace ksweep {

struct AddrRange {
  uint64_t begin = 0;
  uint64_t end = 0;  // not in it
};

// Reads `0xBEGIN-0xEND<TAB>name`, without the newline. The name is for people:
// two functions of one name can differ in this. False for another form.
bool ParseBlacklistLine(std::string_view line, AddrRange* range);

// Sorted, disjoint ranges.
class Blacklist {
 public:
  static absl::StatusOr<Blacklist> Read(ListFile* file);
  // As read from lines; sorts and merges.
  explicit Blacklist(std::vector<AddrRange> ranges);

  bool Contains(uint64_t addr) const;
  // True if the kernel shows no addresses in it, or nothing is listed.
  bool empty() const { return ranges_.empty(); }

 private:
  std::vector<AddrRange> ranges_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_BLACKLIST_H_
