#include "lib/base/name_set.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ksweep {
namespace {

// 16 bits a name keep false candidates below a tenth; 128 KiB stay in a
// second-level cache beside the text.
constexpr int kMinBitmapBits = 10;
constexpr int kMaxBitmapBits = 20;
constexpr uint64_t kBitsPerName = 16;

// A bucket holds about one entry; longer ones are searched in halves.
constexpr uint32_t kLinearSearch = 8;

int Log2Ceil(uint64_t value) {
  return value <= 1 ? 0 : std::bit_width(value - 1);
}

}  // namespace

NameSet::NameSet(absl::Span<const std::string_view> names,
                 std::vector<uint32_t>* ids) {
  CopyNames(names);
  std::vector<uint64_t> hashes(names.size());
  std::vector<uint32_t> records(names.size());
  uint32_t unit = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    records[i] = unit;
    Record* record = RecordAt(unit);
    hashes[i] = HashName(Bytes(record), record->len);
    unit += static_cast<uint32_t>(
        (sizeof(Record) + record->len + kRecordUnit - 1) / kRecordUnit);
  }
  FillBitmap(hashes);
  SortEntries(hashes, records);
  AssignIds(records, ids);
}

void NameSet::CopyNames(absl::Span<const std::string_view> names) {
  constexpr size_t kPrefetchPad = 64;
  size_t bytes = kPrefetchPad;
  for (std::string_view name : names) {
    bytes += sizeof(Record) + name.size() + kRecordUnit;
  }
  arena_.reset(new char[bytes]);
  arena_bytes_ = bytes;
  char* place = arena_.get();
  for (std::string_view name : names) {
    const Record record = {0, static_cast<uint32_t>(name.size())};
    std::memcpy(place, &record, sizeof(record));
    if (!name.empty()) {
      std::memcpy(place + sizeof(record), name.data(), name.size());
    }
    place += (sizeof(record) + name.size() + kRecordUnit - 1) / kRecordUnit *
             kRecordUnit;
  }
}

void NameSet::FillBitmap(absl::Span<const uint64_t> hashes) {
  const int bits = std::clamp(Log2Ceil(hashes.size() * kBitsPerName),
                              kMinBitmapBits, kMaxBitmapBits);
  bitmap_.assign(size_t{1} << (bits - 6), 0);
  bitmap_shift_ = 64 - bits;
  for (uint64_t hash : hashes) {
    const uint64_t bit = hash >> bitmap_shift_;
    bitmap_[bit >> 6] |= uint64_t{1} << (bit & 63);
  }
}

// A counting sort by bucket, then a sort of each bucket.
void NameSet::SortEntries(absl::Span<const uint64_t> hashes,
                          absl::Span<const uint32_t> records) {
  const int bits = std::max(1, Log2Ceil(hashes.size()));
  directory_shift_ = 64 - bits;
  directory_.assign((size_t{1} << bits) + 1, 0);
  for (uint64_t hash : hashes) ++directory_[(hash >> directory_shift_) + 1];
  for (size_t i = 1; i < directory_.size(); ++i) {
    directory_[i] += directory_[i - 1];
  }
  entries_.resize(hashes.size());
  std::vector<uint32_t> next(directory_.begin(), directory_.end() - 1);
  for (size_t i = 0; i < hashes.size(); ++i) {
    entries_[next[hashes[i] >> directory_shift_]++] = {
        static_cast<uint32_t>(hashes[i]), records[i]};
  }
  for (size_t i = 0; i + 1 < directory_.size(); ++i) {
    if (directory_[i + 1] - directory_[i] < 2) continue;
    std::sort(entries_.begin() + directory_[i],
              entries_.begin() + directory_[i + 1],
              [](const Entry& a, const Entry& b) {
                return a.low != b.low ? a.low < b.low : a.record < b.record;
              });
  }
}

// Equal names are neighbours but for other names with the same hash; the first
// given one stands for all.
void NameSet::AssignIds(absl::Span<const uint32_t> records,
                        std::vector<uint32_t>* ids) {
  for (Entry& entry : entries_) RecordAt(entry.record)->id = entry.record;
  for (size_t i = 1; i < entries_.size(); ++i) {
    Record* record = RecordAt(entries_[i].record);
    for (size_t j = i; j-- > 0 && entries_[j].low == entries_[i].low;) {
      const Record* other = RecordAt(entries_[j].record);
      if (other->len == record->len &&
          std::memcmp(Bytes(other), Bytes(record), record->len) == 0) {
        // The nearest of its equals already knows the first.
        record->id = other->id;
        break;
      }
    }
  }
  if (ids != nullptr) ids->resize(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    Record* record = RecordAt(records[i]);
    record->id = record->id == records[i] ? size_++ : RecordAt(record->id)->id;
    if (ids != nullptr) (*ids)[i] = record->id;
  }
}

const NameSet::Entry* NameSet::LowerBound(uint32_t begin, uint32_t end,
                                          uint32_t low) const {
  const Entry* first = entries_.data() + begin;
  const Entry* last = entries_.data() + end;
  if (end - begin > kLinearSearch) {
    return std::lower_bound(
        first, last, low,
        [](const Entry& entry, uint32_t value) { return entry.low < value; });
  }
  while (first != last && first->low < low) ++first;
  return first;
}

NameSet::Hit NameSet::FindIn(const Entry* entry, const Entry* end,
                             const Probe& probe) const {
  const uint32_t low = static_cast<uint32_t>(probe.hash);
  for (; entry != end && entry->low == low; ++entry) {
    const Record* record = RecordAt(entry->record);
    if (record->len == probe.len &&
        std::memcmp(Bytes(record), probe.name, probe.len) == 0) {
      return {record->id, Bytes(record)};
    }
  }
  return {};
}

NameSet::Hit NameSet::Find(std::string_view name) const {
  const uint64_t hash = HashName(name);
  if (entries_.empty() || !MayContain(hash)) return {};
  const uint32_t* bucket = &directory_[hash >> directory_shift_];
  const Entry* end = entries_.data() + bucket[1];
  return FindIn(LowerBound(bucket[0], bucket[1], static_cast<uint32_t>(hash)),
                end,
                {name.data(), static_cast<uint32_t>(name.size()), 0, hash});
}

size_t NameSet::bytes() const {
  return arena_bytes_ + entries_.capacity() * sizeof(Entry) +
         directory_.capacity() * sizeof(uint32_t) +
         bitmap_.capacity() * sizeof(uint64_t);
}

}  // namespace ksweep
