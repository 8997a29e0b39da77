// Table: from addresses to symbols, and one after the other.

#include <algorithm>
#include <utility>

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

Table::Cursor::Cursor(const Table& table, uint32_t number)
    : table_(&table), ahead_(8) {
  const Segment& segment = table.segments_[number];
  base_ = segment.base - segment.compact;
  first_compact_ = segment.compact;
  span_ = segment.span;
  next_offset_ = segment.first_record;
}

void Table::Cursor::Grow() {
  absl::InlinedVector<Ahead, 8> larger(2 * ahead_.size());
  for (uint32_t i = next_record_; i != read_; ++i) {
    larger[i & (larger.size() - 1)] = At(i);
  }
  ahead_ = std::move(larger);
}

bool Table::Cursor::Read() {
  if (!more_) return false;
  more_ = false;
  if (next_offset_ >= table_->shape_.record_bytes) return false;
  if (read_ - next_record_ == ahead_.size()) [[unlikely]]
    Grow();
  Ahead& ahead = At(read_);
  if (!table_->ReadRecord(next_offset_, &ahead.record)) {
    damaged_ = true;
    return false;
  }
  if (ahead.record.compact - first_compact_ >= span_) return false;
  ahead.offset = next_offset_;
  next_offset_ = SkipNoStart(ahead.record.end);
  ++read_;
  more_ = true;
  return true;
}

// So that all pads in front of `compact` are known.
void Table::Cursor::ReadUpTo(uint64_t compact) {
  while (At(read_ - 1).record.compact < compact && Read()) {
  }
}

void Table::Cursor::Take(uint32_t number, bool is_pad, uint64_t compact) {
  const Ahead& ahead = At(number);
  compact_ = compact;
  entry_ = {ahead.offset, is_pad};
  record_ = ahead.record;
}

bool Table::Cursor::Next() {
  if (next_record_ == read_ && !Read()) return false;
  const uint64_t compact = At(next_record_).record.compact;
  const uint32_t distance = table_->shape_.pad_distance;
  if (distance != 0) {
    ReadUpTo(compact + distance);
    if (damaged_) return false;
    for (; next_pad_ != read_; ++next_pad_) {
      const Record& record = At(next_pad_).record;
      const uint64_t pad =
          record.compact - std::min<uint64_t>(record.compact, distance);
      if (pad >= compact) break;
      if (!(record.head & kPadBit)) continue;
      Take(next_pad_++, true, pad);
      return true;
    }
  }
  Take(next_record_++, false, compact);
  return true;
}

}  // namespace ksweep
