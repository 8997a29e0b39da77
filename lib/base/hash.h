// The hash of a symbol name. Only for tables in memory: its values differ
// between byte orders and are not promised.

#ifndef KSWEEP_LIB_BASE_HASH_H_
#define KSWEEP_LIB_BASE_HASH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "lib/base/bytes.h"

namespace ksweep {

inline constexpr uint64_t kHash0 = 0xa0761d6478bd642fULL;
inline constexpr uint64_t kHash1 = 0xe7037ed1a0b428dbULL;

inline uint64_t FoldMultiply(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// The `len` < 8 bytes at `p` as two words, reading nothing else.
inline void LoadShort(const char* p, size_t len, uint64_t* a, uint64_t* b) {
  uint32_t lo = 0, hi = 0;
  if (len >= 4) {
    std::memcpy(&lo, p, 4);
    std::memcpy(&hi, p + len - 4, 4);
  } else if (len > 0) {
    lo = static_cast<unsigned char>(p[0]) |
         (static_cast<uint32_t>(static_cast<unsigned char>(p[len / 2])) << 8) |
         (static_cast<uint32_t>(static_cast<unsigned char>(p[len - 1])) << 16);
  }
  *a = lo;
  *b = hi;
}

// Of a name's first and last 8 bytes and its length: quick, and enough to turn
// most names away. Not less than 8 bytes for the first one.
inline uint64_t HashLongEnds(const char* p, size_t len) {
  return FoldMultiply(LoadU64(p) ^ kHash0, LoadU64(p + len - 8) ^ kHash1 ^ len);
}

inline uint64_t HashEnds(const char* p, size_t len) {
  if (len >= 8) [[likely]]
    return HashLongEnds(p, len);
  uint64_t a, b;
  LoadShort(p, len, &a, &b);
  return FoldMultiply(a ^ kHash0, b ^ kHash1 ^ len);
}

// Every byte counts: names come in long families that differ in one place.
inline uint64_t HashName(const char* p, size_t len) {
  uint64_t h = HashEnds(p, len);
  if (len <= 16) return h;
  const char* const last = p + len - 16;
  for (const char* q = p + 16; q < last; q += 8) {
    h = FoldMultiply(h ^ kHash0, LoadU64(q) ^ kHash1);
  }
  return FoldMultiply(LoadU64(p + 8) ^ kHash0 ^ h, LoadU64(last) ^ kHash1);
}

inline uint64_t HashName(std::string_view name) {
  return HashName(name.data(), name.size());
}

// For addresses and other words.
inline uint64_t HashWord(uint64_t word) {
  return FoldMultiply(word ^ kHash0, kHash1);
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_HASH_H_
