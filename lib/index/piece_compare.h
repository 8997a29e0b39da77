// Whether a name goes on with a piece.

#ifndef KSWEEP_LIB_INDEX_PIECE_COMPARE_H_
#define KSWEEP_LIB_INDEX_PIECE_COMPARE_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/index/dictionary.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ksweep {

// What of two words of a slot, as they lie in memory, belongs to a piece of
// each length.
struct PieceMask {
  uint64_t low, high;
};

constexpr uint64_t FirstBytes(size_t cnt) {
  if (cnt == 0) return 0;
  if (cnt >= 8) return ~uint64_t{0};
  return std::endian::native == std::endian::little
             ? (uint64_t{1} << (8 * cnt)) - 1
             : ~uint64_t{0} << (64 - 8 * cnt);
}

inline constexpr std::array<PieceMask, 16> kPieceMasks = [] {
  std::array<PieceMask, 16> masks = {};
  for (size_t size = 0; size < masks.size(); ++size) {
    masks[size] = {FirstBytes(size), FirstBytes(size > 8 ? size - 8 : 0)};
  }
  return masks;
}();

// 0 if the bytes at `name`, of which 16 can be read, start with the piece. Both
// give the same; the second is what machines with SSE2 use.
inline uint64_t DifferPortable(const Dictionary::Slot& slot, const char* name) {
  const PieceMask& mask = kPieceMasks[slot.size & 0x0f];
  const uint64_t low = LoadU64(slot.bytes) ^ LoadU64(name);
  const uint64_t high = LoadU64(slot.bytes + 8) ^ LoadU64(name + 8);
  return (low & mask.low) | (high & mask.high);
}

#if defined(__SSE2__)

// A bit for each byte of a piece.
inline constexpr std::array<uint32_t, 16> kPieceBits = [] {
  std::array<uint32_t, 16> bits = {};
  for (size_t size = 0; size < bits.size(); ++size) {
    bits[size] = (1u << size) - 1;
  }
  return bits;
}();

inline uint64_t DifferSse2(const Dictionary::Slot& slot, const char* name) {
  const __m128i same =
      _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(&slot)),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(name)));
  return ~static_cast<uint32_t>(_mm_movemask_epi8(same)) &
         kPieceBits[slot.size];
}

#endif

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_PIECE_COMPARE_H_
