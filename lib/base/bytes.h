// Bytes read as words.

#ifndef KSWEEP_LIB_BASE_BYTES_H_
#define KSWEEP_LIB_BASE_BYTES_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ksweep {

inline uint32_t LoadU32(const char* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

inline uint64_t LoadU64(const char* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

// A word whose first byte in memory counts most, so that it orders as text
// does; and back.
inline uint64_t ToBigEndian(uint64_t word) {
  if constexpr (std::endian::native == std::endian::little) {
    return __builtin_bswap64(word);
  }
  return word;
}

// std::memcmp() == 0 for short pieces, without the call.
inline bool SameBytes(const char* a, const char* b, size_t len) {
  if (len < 8) return len == 0 || std::memcmp(a, b, len) == 0;
  for (size_t at = 0; at + 8 < len; at += 8) {
    if (LoadU64(a + at) != LoadU64(b + at)) return false;
  }
  return LoadU64(a + len - 8) == LoadU64(b + len - 8);
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_BYTES_H_
