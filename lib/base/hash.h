// The hash of a symbol name. Only for tables in memory: its values differ
// between byte orders and are not promised.

#ifndef KSWEEP_LIB_BASE_HASH_H_
#define KSWEEP_LIB_BASE_HASH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ksweep {

inline uint64_t LoadU64(const char* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

inline uint64_t FoldMultiply(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// The `len` < 16 bytes at `p` as two words, reading nothing else.
inline void LoadShort(const char* p, size_t len, uint64_t* a, uint64_t* b) {
  if (len >= 8) {
    *a = LoadU64(p);
    *b = LoadU64(p + len - 8);
    return;
  }
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

// Every byte counts: names come in long families that differ in one place.
inline uint64_t HashName(const char* p, size_t len) {
  constexpr uint64_t k0 = 0xa0761d6478bd642fULL;
  constexpr uint64_t k1 = 0xe7037ed1a0b428dbULL;
  const char* const end = p + len;
  uint64_t h = len * k1;
  uint64_t a, b;
  if (len < 16) {
    LoadShort(p, len, &a, &b);
  } else {
    for (; end - p > 16; p += 16) {
      h = FoldMultiply(LoadU64(p) ^ k0 ^ h, LoadU64(p + 8) ^ k1);
    }
    a = LoadU64(end - 16);
    b = LoadU64(end - 8);
  }
  return FoldMultiply(a ^ k0 ^ h, b ^ k1);
}

inline uint64_t HashName(std::string_view name) {
  return HashName(name.data(), name.size());
}

// For addresses and other words.
inline uint64_t HashWord(uint64_t word) {
  return FoldMultiply(word ^ 0xa0761d6478bd642fULL, 0xe7037ed1a0b428dbULL);
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_HASH_H_
