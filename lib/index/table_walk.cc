// Table: from addresses to symbols, and one after the other.

#include <algorithm>
#include <utility>

#include "lib/index/table_records.h"

namespace ksweep {

// Of any bytes: what is not ascending gives wrong answers, but within bounds.
void Table::NotePages() {
  uint32_t highest = 0;
  for (const Segment& segment : segments_) {
    highest = std::max(highest, segment.compact + segment.span);
  }
  directory_shift_ = 0;
  while (highest >> directory_shift_ >= kDirectorySize) ++directory_shift_;
  directory_.assign(kDirectorySize + 1, page_cnt_);
  uint32_t next = 0;
  for (uint32_t page = 0; page < page_cnt_; ++page) {
    const uint32_t bucket =
        std::min(PageBase(page) >> directory_shift_, kDirectorySize);
    for (; next <= bucket; ++next) directory_[next] = page;
  }
  directory_[kDirectorySize] = page_cnt_;
}

uint32_t Table::PagesBelow(uint64_t compact) const {
  const uint64_t bucket =
      std::min<uint64_t>(compact >> directory_shift_, kDirectorySize - 1);
  uint32_t low = directory_[bucket];
  uint32_t cnt = directory_[bucket + 1] - low;
  // A few are counted without a branch that could be guessed wrong.
  for (; cnt > 4; cnt -= cnt / 2) {
    const uint32_t half = cnt / 2;
    low += PageBase(low + half - 1) < compact ? half : 0;
  }
  uint32_t below = 0;
  for (uint32_t i = 0; i < cnt; ++i) below += PageBase(low + i) < compact;
  return low + below;
}

// Stays within the page, and looks at nothing but deltas and counts.
inline uint32_t Table::SkipInPage(uint32_t page, uint32_t at, uint32_t delta,
                                  uint32_t* offset) const {
  // None starts at the page's last byte.
  const uint32_t end =
      std::min((page << kPageShift) + kNoStart, shape_.record_bytes);
  uint32_t last = 0;
  *offset = at;
  while (at < end) {
    const uint32_t word = LoadLe<uint32_t>(records_ + at);
    const uint32_t its = word & 0xffff;
    const uint32_t cnt = word >> 16 & kCountBits;
    if (its > delta || cnt == kLongCount) break;
    *offset = its > last ? at : *offset;
    last = its;
    at += 3 + CodeBytes(cnt);
  }
  return SkipNoStart(at);
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

// A symbol that is alone at its address, within a page and within its segment.
bool Table::FindPlainPlace(uint32_t page, uint64_t compact,
                           Place* place) const {
  const Segment& segment = segments_[place->segment];
  const uint64_t end = uint64_t{segment.compact} + segment.span;
  const uint64_t delta = compact - PageBase(page);
  const uint32_t first =
      page * kPageBytes + static_cast<uint8_t>(page_starts_[page]);
  if (delta >= kFarDelta) return false;
  uint32_t offset;
  const uint32_t at =
      SkipInPage(page, first, static_cast<uint32_t>(delta), &offset);
  Record record, next;
  if (offset == first || at >= shape_.record_bytes ||
      !ReadRecord(offset, &record) || SkipNoStart(record.end) != at ||
      !ReadRecord(at, &next)) {
    return false;
  }
  if (record.compact < segment.compact || record.compact > compact ||
      next.compact <= compact || next.compact >= end) {
    return false;
  }
  const bool has_pad = next.head & kPadBit;
  const uint64_t next_start =
      next.compact - (has_pad ? uint64_t{shape_.pad_distance} : 0);
  const bool in_pad = next_start <= compact;
  if (in_pad == has_pad) {
    // There may be pads of later ones in front of it.
    Record later;
    const uint32_t later_at = SkipNoStart(next.end);
    if (later_at >= shape_.record_bytes || !ReadRecord(later_at, &later) ||
        later.compact < next.compact + uint64_t{shape_.pad_distance}) {
      return false;
    }
  }
  if (in_pad && next_start <= record.compact) return false;
  const uint64_t start = in_pad ? next_start : record.compact;
  place->addr = segment.base + (start - segment.compact);
  place->size = (in_pad ? next.compact : next_start) - start;
  place->entries.push_back({in_pad ? at : offset, in_pad});
  place->record = in_pad ? next : record;
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
  if (FindPlainPlace(page, compact, place)) return true;
  bool again = false;
  if (!CollectPlace(page, compact, place, &again)) return false;
  if (again && page > 0) {
    const uint64_t best = segment.compact + (place->addr - segment.base);
    page = PagesBelow(best);
    page -= page > 0;
    if (!CollectPlace(page, compact, place, &again)) return false;
  }
  // Every segment starts with a symbol.
  return !place->entries.empty() &&
         ReadRecord(place->entries[0].offset, &place->record);
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

Table::Walker::Walker(const Table& table, uint32_t segment)
    : table_(&table), segment_(&table.segments_[segment]) {
  base_ = segment_->base - segment_->compact;
  next_offset_ = segment_->first_record;
  last_compact_ = segment_->compact;
  std::memcpy(buffer_.Prepare(kPadPrefix.size()), kPadPrefix.data(),
              kPadPrefix.size());
  Refill();
}

// Moves the last item in front of those that it belongs in front of.
void Table::Walker::PutInPlace(Item* last) {
  // Where a search from behind is given up.
  constexpr int kFar = 32;
  Item* const first = items_.data();
  Item* at = last;
  while (at != first && at[-1].Key() > last->Key() && last - at < kFar) --at;
  std::rotate(at, last, last + 1);
  sorted_ &= at == first || at[-1].Key() <= at->Key();
}

void Table::Walker::DropVisited() {
  std::copy(items_.begin() + static_cast<ptrdiff_t>(next_),
            items_.begin() + static_cast<ptrdiff_t>(end_), items_.begin());
  ready_ -= next_;
  end_ -= next_;
  next_ = 0;
}

// Appends the symbols of `cnt` records, or of those that there are.
void Table::Walker::ReadRecords(size_t cnt) {
  if (items_.size() < end_ + 2 * cnt) items_.resize(end_ + 2 * cnt);
  Item* end = items_.data() + end_;
  const Segment segment = *segment_;
  const uint32_t record_bytes = table_->shape_.record_bytes;
  const uint32_t pad_distance = table_->shape_.pad_distance;
  uint32_t offset = next_offset_;
  uint32_t last = last_compact_;
  for (; cnt > 0; --cnt) {
    ended_ = offset >= record_bytes;
    if (ended_) break;
    Record record;
    damaged_ = !table_->ReadRecord(offset, &record) || record.compact < last;
    ended_ = damaged_ || record.compact - segment.compact >= segment.span;
    if (ended_) break;
    if (record.head & kPadBit) {
      *end = {record, offset,
              record.compact - std::min(record.compact, pad_distance), 0, true};
      if (end->compact < last) [[unlikely]]
        PutInPlace(end);
      ++end;
    }
    // No symbol read so far is behind a record.
    *end++ = {record, offset, record.compact, 0, false};
    offset = SkipNoStart(record.end);
    last = record.compact;
  }
  next_offset_ = offset;
  last_compact_ = last;
  end_ = static_cast<size_t>(end - items_.data());
  Sort();
}

void Table::Walker::Sort() {
  if (sorted_) return;
  std::stable_sort(
      items_.data(), items_.data() + end_,
      [](const Item& a, const Item& b) { return a.Key() < b.Key(); });
  sorted_ = true;
}

// Pads of later records may be among the last symbols, and end the one in front
// of them.
void Table::Walker::SetReady() {
  ready_ = end_;
  if (ended_) return;
  const uint64_t distance = table_->shape_.pad_distance;
  while (ready_ > 0 && items_[ready_ - 1].compact + distance > last_compact_) {
    --ready_;
  }
  if (ready_ == 0) return;
  const uint32_t last = items_[ready_ - 1].compact;
  while (ready_ > 0 && items_[ready_ - 1].compact == last) --ready_;
}

void Table::Walker::SetSizes() {
  if (ready_ == 0) return;
  uint32_t next = items_[std::min(ready_, end_ - 1)].compact;
  uint32_t size =
      segment_->known_end ? segment_->extent - (next - segment_->compact) : 0;
  for (size_t i = ready_; i-- > 0;) {
    const uint32_t compact = items_[i].compact;
    size = compact == next ? size : next - compact;
    next = compact;
    items_[i].size = size;
  }
}

// Reads until a symbol is ready, if there is one.
void Table::Walker::Refill() {
  DropVisited();
  do {
    // So many that keeping what is not ready costs little.
    ReadRecords(std::max(kBatch, end_));
    SetReady();
  } while (ready_ == 0 && !ended_);
  SetSizes();
  // What was read before the damage is of no use, either.
  if (damaged_) ready_ = 0;
}

// Of those ready, behind the last one below `limit`, or at addr().
size_t Table::Walker::EndBelow(uint64_t limit) const {
  const uint64_t first = addr();
  const uint64_t distance = limit > first ? limit - first : 1;
  const uint32_t compact = items_[next_].compact;
  size_t end = ready_;
  while (items_[end - 1].compact - compact >= distance) --end;
  return end;
}

inline bool Table::Walker::Decode(const Item& item) {
  if (item.offset == decoded_) return true;
  buffer_.Clear();
  size_t size = kPadPrefix.size();
  if (!table_->AppendName(item.offset, item.record, &size, &buffer_)) {
    damaged_ = true;
    return false;
  }
  decoded_ = item.offset;
  padded_name_ = buffer_.View(size);
  return true;
}

bool Table::Walker::VisitBelow(
    uint64_t limit, absl::FunctionRef<bool(const IndexSymbolView&)> visit) {
  IndexSymbolView symbol;
  symbol.module = table_->owners_[segment_->owner];
  do {
    const size_t end = EndBelow(limit);
    for (; next_ < end; ++next_) {
      const Item& item = items_[next_];
      if (!Decode(item)) return false;
      symbol.addr = base_ + item.compact;
      symbol.size = item.size;
      symbol.type = table_->types_.TypeAt(
          item.offset, item.record.head & kUpperBit, &types_);
      const size_t skip = item.is_pad ? 0 : kPadPrefix.size();
      symbol.name = {padded_name_.data() + skip, padded_name_.size() - skip};
      if (!visit(symbol)) return false;
    }
    if (next_ < ready_) return true;
    Refill();
  } while (!done() && addr() < limit);
  return !damaged_;
}

}  // namespace ksweep
