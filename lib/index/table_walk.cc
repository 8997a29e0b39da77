// Table: from addresses to symbols, and one after the other.

#include <algorithm>

#include "lib/index/table_records.h"

namespace ksweep {

uint32_t Table::PagesBelow(uint64_t compact) const {
  uint32_t low = 0;
  for (uint32_t cnt = page_cnt_; cnt > 0;) {
    const uint32_t half = cnt / 2;
    const bool below = PageBase(low + half) < compact;
    low = below ? low + half + 1 : low;
    cnt = below ? cnt - half - 1 : half;
  }
  return low;
}

// Stays within the page, and looks at nothing but deltas and counts.
inline uint32_t Table::SkipInPage(uint32_t page, uint32_t at, uint32_t delta,
                                  uint32_t* offset) const {
  uint32_t last = 0;
  while (at >> kPageShift == page && at < shape_.record_bytes) {
    const char* const p = records_ + at;
    const uint32_t its = LoadLe<uint16_t>(p);
    const uint32_t cnt = static_cast<uint8_t>(p[2]) & kCountBits;
    if (its > delta || cnt == kLongCount) break;
    *offset = its > last ? at : *offset;
    last = its;
    at = SkipNoStart(at + 3 + CodeBytes(cnt));
  }
  return at;
}

bool Table::SkipTo(uint32_t page, uint64_t compact, uint32_t* offset) const {
  uint32_t at = page * kPageBytes + static_cast<uint8_t>(page_starts_[page]);
  *offset = at;
  const uint64_t delta = compact - PageBase(page);
  uint64_t last = PageBase(page);
  if (delta < kFarDelta) {
    at = SkipInPage(page, at, static_cast<uint32_t>(delta), offset);
    Record record;
    if (*offset >= shape_.record_bytes) return true;
    if (!ReadRecord(*offset, &record)) return false;
    last = record.compact;
  }
  while (at < shape_.record_bytes) {
    Record record;
    if (!ReadRecord(at, &record)) return false;
    if (record.compact > compact) break;
    if (record.compact > last) *offset = at;
    last = record.compact;
    at = SkipNoStart(record.end);
  }
  return true;
}

bool Table::CollectPlace(uint32_t page, uint64_t compact, Place* place,
                         bool* again) const {
  const Segment& segment = segments_[place->segment];
  const uint64_t first = segment.compact;
  const uint64_t end = first + segment.span;
  const uint64_t distance = shape_.pad_distance;
  uint64_t best = 0, next = UINT64_MAX;
  place->entries.clear();
  const auto consider = [&](uint64_t start, const Entry& entry) {
    if (start > compact) {
      next = std::min(next, start);
    } else if (start >= first && start >= best) {
      if (start > best) place->entries.clear();
      best = start;
      place->entries.push_back(entry);
    }
  };
  uint32_t offset;
  if (!SkipTo(page, compact, &offset)) return false;
  while (offset < shape_.record_bytes) {
    Record record;
    if (!ReadRecord(offset, &record)) return false;
    if (record.compact >= end) break;
    consider(record.compact, {offset, false});
    if (record.head & kPadBit) {
      consider(record.compact - distance, {offset, true});
    }
    // Nor are there pads of later ones in front of the next symbol.
    if (next != UINT64_MAX && record.compact >= next + distance) break;
    offset = SkipNoStart(record.end);
  }
  if (place->entries.empty()) return true;
  *again = best <= PageBase(page);
  place->addr = segment.base + (best - first);
  place->size = 0;
  if (next < end) {
    place->size = next - best;
  } else if (segment.known_end) {
    place->size = segment.extent - (best - first);
  }
  return true;
}

// What starts highest of all that is not above `addr`, which the segment holds.
bool Table::FindPlace(uint32_t number, uint64_t addr, Place* place) const {
  const Segment& segment = segments_[number];
  // Behind the last symbol's start the next segment's compact addresses begin.
  const uint64_t compact =
      segment.compact +
      std::min<uint64_t>(addr - segment.base, segment.span - 1);
  place->segment = number;
  place->entries.clear();
  if (page_cnt_ == 0) return false;
  uint32_t page = PagesBelow(compact + 1);
  page -= page > 0;
  bool again = false;
  if (!CollectPlace(page, compact, place, &again)) return false;
  if (again && page > 0) {
    const uint64_t best = segment.compact + (place->addr - segment.base);
    page = PagesBelow(best);
    page -= page > 0;
    if (!CollectPlace(page, compact, place, &again)) return false;
  }
  // Every segment starts with a symbol.
  return !place->entries.empty();
}

bool Table::ForPlaces(uint64_t addr,
                      absl::FunctionRef<void(const Place&)> visit) const {
  bool ok = true;
  finder_.Find(segments_, addr, [&](uint32_t segment) {
    Place place;
    if (FindPlace(segment, addr, &place)) {
      visit(place);
    } else {
      ok = false;
    }
  });
  return ok;
}

Table::Cursor::Cursor(const Table& table, uint32_t segment)
    : table_(&table), segment_(segment) {
  record_.next = pad_.next = table.segments_[segment].first_record;
  AdvanceRecord();
  AdvancePad();
}

bool Table::Cursor::Read(Reader* reader, uint8_t* head) {
  const Segment& segment = table_->segments_[segment_];
  if (reader->next >= table_->shape_.record_bytes) return false;
  Record record;
  if (!table_->ReadRecord(reader->next, &record)) {
    damaged_ = true;
    return false;
  }
  if (record.compact - segment.compact >= segment.span) return false;
  reader->offset = reader->next;
  reader->next = SkipNoStart(record.end);
  reader->compact = record.compact;
  *head = record.head;
  return true;
}

void Table::Cursor::AdvanceRecord() {
  uint8_t head;
  if (!Read(&record_, &head)) record_.compact = kAtEnd;
}

void Table::Cursor::AdvancePad() {
  if (table_->shape_.pad_distance == 0) {
    pad_.compact = kAtEnd;
    return;
  }
  uint8_t head;
  do {
    if (!Read(&pad_, &head)) {
      pad_.compact = kAtEnd;
      return;
    }
  } while (!(head & kPadBit));
  pad_.compact -= std::min<uint64_t>(pad_.compact, table_->shape_.pad_distance);
}

bool Table::Cursor::Next() {
  const bool is_pad = pad_.compact < record_.compact;
  const Reader& reader = is_pad ? pad_ : record_;
  if (reader.compact == kAtEnd || damaged_) return false;
  compact_ = reader.compact;
  entry_ = {reader.offset, is_pad};
  if (is_pad) {
    AdvancePad();
  } else {
    AdvanceRecord();
  }
  return true;
}

uint64_t Table::Cursor::addr() const {
  const Segment& segment = table_->segments_[segment_];
  return segment.base + (compact_ - segment.compact);
}

}  // namespace ksweep
