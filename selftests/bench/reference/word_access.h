// Words at any address, and sums of bytes.

#ifndef KSWEEP_SELFTESTS_BENCH_REFERENCE_WORD_ACCESS_H_
#define KSWEEP_SELFTESTS_BENCH_REFERENCE_WORD_ACCESS_H_

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <numeric>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ksweep::bench {

inline uint32_t LoadBigEndian32(const uint8_t* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof(word));
  if constexpr (std::endian::native == std::endian::little) {
    word = __builtin_bswap32(word);
  }
  return word;
}

inline uint64_t LoadLittleEndian64(const uint8_t* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof(word));
  if constexpr (std::endian::native == std::endian::big) {
    word = __builtin_bswap64(word);
  }
  return word;
}

// The sum of the first `cnt` < 16 of the 16 bytes at `p`.
inline size_t SumOfFirst(const uint8_t* p, size_t cnt) {
#if defined(__SSE2__)
  static constexpr std::array<uint8_t, 32> kMask = [] {
    std::array<uint8_t, 32> mask = {};
    for (size_t i = 0; i < 16; ++i) mask[i] = 0xff;
    return mask;
  }();
  const __m128i keep = _mm_loadu_si128(
      reinterpret_cast<const __m128i*>(kMask.data() + 16 - cnt));
  const __m128i lens = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i sums =
      _mm_sad_epu8(_mm_and_si128(lens, keep), _mm_setzero_si128());
  return static_cast<size_t>(_mm_cvtsi128_si32(sums) +
                             _mm_extract_epi16(sums, 4));
#else
  return std::accumulate(p, p + cnt, size_t{0});
#endif
}

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_REFERENCE_WORD_ACCESS_H_
