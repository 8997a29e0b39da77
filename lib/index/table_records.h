// How a table's records are read; for the files that implement Table.

#ifndef KSWEEP_LIB_INDEX_TABLE_RECORDS_H_
#define KSWEEP_LIB_INDEX_TABLE_RECORDS_H_

#include <algorithm>

#include "lib/index/table.h"

namespace ksweep {

// Most names have no more.
inline constexpr uint32_t kUnconditionalCodes = 6;
// A name of short count has no more.
inline constexpr size_t kMaxShortBytes = kCountBits * kMaxPieceBytes;

// `offset` is below the end of the records. False if the record is damaged.
inline bool Table::ReadRecord(uint32_t offset, Record* record) const {
  const char* p = records_ + offset;
  const uint32_t delta = LoadLe<uint16_t>(p);
  record->head = static_cast<uint8_t>(p[2]);
  p += 3;
  if (delta == kFarDelta) [[unlikely]] {
    record->compact = LoadLe<uint32_t>(p);
    p += 4;
  } else {
    record->compact = PageBase(offset >> kPageShift) + delta;
  }
  record->cnt = record->head & kCountBits;
  if (record->cnt == kLongCount) [[unlikely]] {
    return ReadLongRecord(p, record);
  }
  record->codes = p;
  record->end = static_cast<uint32_t>(p - records_) + CodeBytes(record->cnt);
  return record->end <= shape_.record_bytes;
}

// The record that the last two codes point to. False if that is damaged.
inline bool Table::ReadRefTarget(const Record& record, uint32_t offset,
                                 Record* target) const {
  if (record.cnt < 2) return false;
  const uint32_t at =
      CodeAt(record.codes, record.cnt - 2) |
      static_cast<uint32_t>(CodeAt(record.codes, record.cnt - 1)) << kCodeBits;
  return at < offset && ReadRecord(at, target) && !(target->head & kRefBit);
}

inline const Segment& Table::SegmentOf(uint32_t compact) const {
  size_t i = segments_.size() - 1;
  if (i <= 4) {
    while (i > 0 && segments_[i].compact > compact) --i;
    return segments_[i];
  }
  const auto behind = std::upper_bound(
      segments_.begin() + 1, segments_.end(), compact,
      [](uint32_t c, const Segment& segment) { return c < segment.compact; });
  return *(behind - 1);
}

// A piece is copied with what is behind it, which the next one overwrites. The
// first few are always copied, whether they are there or not: what is behind
// the record looks like codes, too, and the branch would be guessed wrong.
inline size_t Table::AppendShort(const char* codes, uint32_t cnt,
                                 char* out) const {
  static_assert(kUnconditionalCodes == 6);
  size_t ends[kUnconditionalCodes + 1];
  size_t at = 0;
  const auto append = [&at, out](const Dictionary::Slot& slot) {
    std::memcpy(out + at, &slot, sizeof(slot));
    at += slot.size;
  };
  // Shifted so that the bits of a code say where its slot is.
  const auto five = LoadLe<uint64_t>(codes);
  ends[0] = 0;
  append(SlotOf(five << 4));
  ends[1] = at;
  append(SlotOf(five >> 8));
  ends[2] = at;
  append(SlotOf(five >> 20));
  ends[3] = at;
  append(SlotOf(five >> 32));
  ends[4] = at;
  append(SlotOf(five >> 44));
  ends[5] = at;
  append(SlotOf(LoadLe<uint16_t>(codes + 7)));
  if (cnt < kUnconditionalCodes) return ends[cnt];
  codes += kUnconditionalCodes * kCodeBits / 8;
  for (cnt -= kUnconditionalCodes; cnt >= 2; cnt -= 2, codes += 3) {
    const uint32_t two = LoadLe<uint32_t>(codes);
    append(SlotOf(two << 4));
    append(SlotOf(two >> (kCodeBits - 4)));
  }
  if (cnt != 0) append(slots_[LoadLe<uint16_t>(codes) & kCodeMask]);
  return at;
}

inline bool Table::AppendPieces(const Record& record, uint32_t cnt,
                                size_t* size, NameBuffer* buffer) const {
  if (record.is_long()) [[unlikely]] {
    return AppendLong(record, cnt,
                      buffer->Prepare(*size + cnt * kMaxPieceBytes), size);
  }
  char* const out = buffer->Prepare(*size + kMaxShortBytes);
  *size += AppendShort(record.codes, cnt, out + *size);
  return true;
}

inline bool Table::AppendName(uint32_t offset, const Record& record,
                              size_t* size, NameBuffer* buffer) const {
  if (record.head & kRefBit) {
    return AppendRefName(offset, record, size, buffer);
  }
  return AppendPieces(record, record.cnt, size, buffer);
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_TABLE_RECORDS_H_
