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

// Whether pieces are what stands at a name's places: asked for each, answered
// for all of them, as a decision for each would often be foretold wrong. Of
// each place 16 bytes are read. Both give the same; the second is what machines
// with SSE2 use.
class PortableComparison {
 public:
  void Add(const Dictionary::Slot& slot, const char* name) {
    const PieceMask& mask = kPieceMasks[slot.size];
    differ_ |= (LoadU64(slot.bytes) ^ LoadU64(name)) & mask.low;
    differ_ |= (LoadU64(slot.bytes + 8) ^ LoadU64(name + 8)) & mask.high;
  }
  bool AllSame() const { return differ_ == 0; }

 private:
  uint64_t differ_ = 0;
};

#if defined(__SSE2__)

class Sse2Comparison {
 public:
  void Add(const Dictionary::Slot& slot, const char* name) {
    const __m128i piece =
        _mm_load_si128(reinterpret_cast<const __m128i*>(&slot));
    const __m128i there =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(name));
    const auto same =
        static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(there, piece)));
    same_ &= same | kBehind[slot.size];
    // Else compilers put off all comparisons until the end, for which they do
    // not have the registers.
    asm("" : "+r"(same_));
  }
  bool AllSame() const { return same_ == kAll; }

 private:
  static constexpr uint32_t kAll = 0xffff;

  // A bit for each byte that does not belong to a piece of that size.
  static constexpr std::array<uint32_t, 16> kBehind = [] {
    std::array<uint32_t, 16> bits = {};
    for (size_t size = 0; size < bits.size(); ++size) {
      bits[size] = kAll & ~((1u << size) - 1);
    }
    return bits;
  }();

  uint32_t same_ = kAll;
};

using PieceComparison = Sse2Comparison;

#else

using PieceComparison = PortableComparison;

#endif

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_PIECE_COMPARE_H_
