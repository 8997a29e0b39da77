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
  while (cnt > 0) {
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
  // None starts at the page's last byte.
  const uint32_t end =
      std::min((page << kPageShift) + kNoStart, shape_.record_bytes);
  uint32_t last = 0;
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

Table::Walker::Walker(const Table& table, uint32_t segment)
    : table_(&table), segment_(&table.segments_[segment]) {
  base_ = segment_->base - segment_->compact;
  next_offset_ = segment_->first_record;
  std::memcpy(buffer_.Prepare(kPadPrefix.size()), kPadPrefix.data(),
              kPadPrefix.size());
  records_.reserve(2 * kBatch);
  items_.reserve(4 * kBatch);
  Refill();
}

// Appends the next record. False at the end of the segment.
inline bool Table::Walker::Read() {
  if (next_offset_ >= table_->shape_.record_bytes) return false;
  ReadAhead read;
  read.offset = next_offset_;
  if (!table_->ReadRecord(next_offset_, &read.record)) {
    damaged_ = true;
    return false;
  }
  if (read.record.compact - segment_->compact >= segment_->span) return false;
  next_offset_ = SkipNoStart(read.record.end);
  records_.push_back(read);
  return true;
}

void Table::Walker::ReadBatch() {
  const size_t used = std::min(next_record_, next_pad_);
  records_.erase(records_.begin(),
                 records_.begin() + static_cast<ptrdiff_t>(used));
  next_record_ -= used;
  next_pad_ -= used;
  for (size_t i = 0; i < kBatch && !ended_; ++i) ended_ = !Read();
}

// Makes items of the records read, but for the last ones, which pads of later
// records may belong in front of.
void Table::Walker::Merge() {
  const uint64_t distance = table_->shape_.pad_distance;
  const auto pad_of = [distance](const ReadAhead& read) {
    return read.record.compact -
           std::min<uint64_t>(read.record.compact, distance);
  };
  while (next_record_ < records_.size()) {
    const ReadAhead& record = records_[next_record_];
    const uint64_t compact = record.record.compact;
    if (!ended_ && compact + distance > records_.back().record.compact) return;
    while (next_pad_ < records_.size() &&
           !(records_[next_pad_].record.head & kPadBit)) {
      ++next_pad_;
    }
    if (next_pad_ < records_.size() && pad_of(records_[next_pad_]) < compact) {
      const ReadAhead& pad = records_[next_pad_++];
      items_.push_back({pad_of(pad), pad, true});
    } else {
      items_.push_back({compact, record, false});
      ++next_record_;
    }
  }
}

void Table::Walker::Refill() {
  items_.erase(items_.begin(), items_.begin() + static_cast<ptrdiff_t>(next_));
  next_ = 0;
  ReadBatch();
  Merge();
  // What was read before the damage is of no use, either.
  if (damaged_) items_.clear();
}

// Behind the items of the next one's address.
inline size_t Table::Walker::GroupEnd() {
  size_t end = next_;
  do {
    ++end;
    while (end == items_.size() && !ended_) {
      end -= next_;
      Refill();
      if (damaged_) return next_;
    }
  } while (end < items_.size() && items_[end].compact == items_[next_].compact);
  return end;
}

inline bool Table::Walker::Decode(const Item& item, std::string_view* name) {
  if (item.read.offset != decoded_) {
    buffer_.Clear();
    size_t size = kPadPrefix.size();
    if (!table_->AppendName(item.read.offset, item.read.record, &size,
                            &buffer_)) {
      damaged_ = true;
      return false;
    }
    decoded_ = item.read.offset;
    decoded_size_ = size;
  }
  *name = buffer_.View(decoded_size_);
  if (!item.is_pad) name->remove_prefix(kPadPrefix.size());
  return true;
}

bool Table::Walker::VisitBelow(
    uint64_t limit, absl::FunctionRef<bool(const IndexSymbolView&)> visit) {
  IndexSymbolView symbol;
  symbol.module = table_->owners_[segment_->owner];
  do {
    const size_t end = GroupEnd();
    if (damaged_) return false;
    const uint64_t compact = items_[next_].compact;
    symbol.addr = base_ + compact;
    symbol.size = 0;
    if (end < items_.size()) {
      symbol.size = items_[end].compact - compact;
    } else if (segment_->known_end) {
      symbol.size = segment_->extent - (compact - segment_->compact);
    }
    for (; next_ < end; ++next_) {
      const Item& item = items_[next_];
      if (!Decode(item, &symbol.name)) return false;
      symbol.type = table_->types_.TypeAt(
          item.read.offset, item.read.record.head & kUpperBit, &types_);
      entry_ = {item.read.offset, item.is_pad};
      if (!visit(symbol)) return false;
    }
  } while (!done() && addr() < limit);
  return true;
}

}  // namespace ksweep
