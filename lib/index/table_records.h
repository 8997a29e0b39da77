// How a table's records are read; for the files that implement Table.

#ifndef KSWEEP_LIB_INDEX_TABLE_RECORDS_H_
#define KSWEEP_LIB_INDEX_TABLE_RECORDS_H_

#include "lib/index/table.h"

namespace ksweep {

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

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_TABLE_RECORDS_H_
