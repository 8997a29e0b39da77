// Numbers of a fixed count of bits, one after the other.

#ifndef KSWEEP_LIB_INDEX_PACKED_ARRAY_H_
#define KSWEEP_LIB_INDEX_PACKED_ARRAY_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/index/le.h"

namespace ksweep {

// Of at most 57 bits, so that one load of eight bytes holds any of them.
inline constexpr unsigned kMaxPackedBits = 57;

// The bytes of `cnt` numbers, with those behind them that a load may touch.
inline uint64_t PackedBytes(uint64_t cnt, unsigned bits) {
  return (cnt * bits + 7) / 8 + 8;
}

inline unsigned BitsFor(uint64_t max) {
  return max == 0 ? 1 : static_cast<unsigned>(std::bit_width(max));
}

inline uint64_t PackedMask(unsigned bits) { return (uint64_t{1} << bits) - 1; }

inline uint64_t LoadPacked(const char* bytes, uint64_t i, unsigned bits) {
  const uint64_t at = i * bits;
  return LoadLe<uint64_t>(bytes + at / 8) >> at % 8 & PackedMask(bits);
}

template <typename T>
std::string PackArray(const std::vector<T>& values, unsigned bits) {
  std::string bytes(PackedBytes(values.size(), bits), '\0');
  uint64_t at = 0;
  for (uint64_t value : values) {
    char* const p = bytes.data() + at / 8;
    StoreLe(LoadLe<uint64_t>(p) | value << at % 8, p);
    at += bits;
  }
  return bytes;
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_PACKED_ARRAY_H_
