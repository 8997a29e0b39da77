#include "lib/resolve/address_set.h"

#include <algorithm>
#include <utility>

#include "lib/base/hash.h"

namespace ksweep {

AddressSet::AddressSet(std::vector<uint64_t> addrs) : addrs_(std::move(addrs)) {
  std::sort(addrs_.begin(), addrs_.end());
  for (uint64_t addr : addrs_) {
    const uint64_t bit = HashWord(addr) >> (64 - kBits);
    bitmap_[bit >> 6] |= uint64_t{1} << (bit & 63);
  }
}

bool AddressSet::Contains(uint64_t addr) const {
  const uint64_t bit = HashWord(addr) >> (64 - kBits);
  if (((bitmap_[bit >> 6] >> (bit & 63)) & 1) == 0) return false;
  return std::binary_search(addrs_.begin(), addrs_.end(), addr);
}

}  // namespace ksweep
