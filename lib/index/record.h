// Records, one a symbol, one behind the other in the order of segments and
// addresses:
//
//   u16 delta   compact address, counted from the base of the record's page;
//               kFarDelta: a u32 with all of it follows the head
//   u8 head     see below
//   codes       of the name, 12 bits each, the lowest first
//
// With kRefBit the last two codes are the offset of an earlier record, and the
// name is that of the codes before them followed by that record's name, which
// is spelled out.

#ifndef KSWEEP_LIB_INDEX_RECORD_H_
#define KSWEEP_LIB_INDEX_RECORD_H_

#include <cstddef>
#include <cstdint>

#include "lib/index/dictionary.h"
#include "lib/index/le.h"

namespace ksweep {

inline constexpr uint32_t kFarDelta = 0xffff;

inline constexpr uint8_t kPadBit = 0x80;    // a pad is folded into it
inline constexpr uint8_t kRefBit = 0x40;    // ends in an earlier name
inline constexpr uint8_t kUpperBit = 0x20;  // the type is a capital
inline constexpr uint8_t kCountBits = 0x1f;
// The count of codes follows the head (and the far address) as LEB128. Only
// such names may have kEscapeCode.
inline constexpr uint8_t kLongCount = 0x1f;

// The area is cut into pages. No record starts at the last byte of one, so that
// this can mean that none starts in it.
inline constexpr unsigned kPageShift = 7;
inline constexpr uint32_t kPageBytes = 1u << kPageShift;
inline constexpr uint32_t kNoStart = kPageBytes - 1;

// The largest head, and the codes of a name of short count: what may be read at
// any offset below the end of the area without a further check.
inline constexpr uint32_t kRecordPadding = 3 + 4 + 10 + 31 * 3 / 2 + 4;

inline constexpr uint32_t kMaxRefOffset = (1u << (2 * kCodeBits)) - 1;

inline uint32_t CodeBytes(uint32_t cnt) { return (3 * cnt + 1) / 2; }

inline uint16_t CodeAt(const char* codes, uint32_t i) {
  const uint32_t bit = i * 12;
  return static_cast<uint16_t>(LoadLe<uint16_t>(codes + bit / 8) >> bit % 8 &
                               kCodeMask);
}

inline uint32_t SkipNoStart(uint32_t offset) {
  return offset + ((offset & kNoStart) == kNoStart);
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_RECORD_H_
