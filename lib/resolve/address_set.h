#ifndef KSWEEP_LIB_RESOLVE_ADDRESS_SET_H_
#define KSWEEP_LIB_RESOLVE_ADDRESS_SET_H_

#include <array>
#include <cstdint>
#include <vector>

namespace ksweep {

// Addresses, sorted, to search every symbol's address in. Most are turned away
// by a bitmap.
class AddressSet {
 public:
  AddressSet() = default;
  explicit AddressSet(std::vector<uint64_t> addrs);

  bool empty() const { return addrs_.empty(); }
  bool Contains(uint64_t addr) const;

 private:
  static constexpr int kBits = 13;

  std::vector<uint64_t> addrs_;
  std::array<uint64_t, (1 << kBits) / 64> bitmap_ = {};
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_ADDRESS_SET_H_
