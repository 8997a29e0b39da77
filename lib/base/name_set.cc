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

int Log2Ceil(uint64_t value) {
  return value <= 1 ? 0 : std::bit_width(value - 1);
}

size_t BytesOf(absl::Span<const std::string_view> names) {
  size_t bytes = 0;
  for (std::string_view name : names) bytes += name.size();
  return bytes;
}

}  // namespace

NameSet::NameSet(absl::Span<const std::string_view> names)
    : NameSet(static_cast<uint32_t>(names.size()), BytesOf(names),
              [names](uint32_t i) { return names[i]; }) {}

NameSet::NameSet(uint32_t cnt, size_t bytes,
                 absl::FunctionRef<std::string_view(uint32_t)> name_at) {
  CopyNames(cnt, bytes, name_at);
  SortEntries(HashNames(cnt));
  FindRepeats();
  size_ = cnt - static_cast<uint32_t>(repeats_.size());
}

// Each name gets its place in the order given as its id.
void NameSet::CopyNames(uint32_t cnt, size_t bytes,
                        absl::FunctionRef<std::string_view(uint32_t)> name_at) {
  constexpr size_t kPrefetchPad = 64;
  arena_bytes_ = cnt * sizeof(Record) + bytes + kPrefetchPad;
  arena_.reset(new char[arena_bytes_]);
  char* place = arena_.get();
  for (uint32_t i = 0; i < cnt; ++i) {
    const std::string_view name = name_at(i);
    const Record record = {i, static_cast<uint32_t>(name.size())};
    std::memcpy(place, &record, sizeof(record));
    place += sizeof(record);
    if (!name.empty()) std::memcpy(place, name.data(), name.size());
    place += name.size();
  }
  const Record nameless = {0, UINT32_MAX};
  std::memcpy(place, &nameless, sizeof(nameless));
}

// Fills the bitmap, too.
std::vector<uint32_t> NameSet::HashNames(uint32_t cnt) {
  const int bits =
      std::clamp(Log2Ceil(cnt * kBitsPerName), kMinBitmapBits, kMaxBitmapBits);
  bitmap_.assign(size_t{1} << (bits - 6), 0);
  bitmap_shift_ = 64 - bits;
  std::vector<uint32_t> highs(cnt);
  uint32_t at = 0;
  for (uint32_t& high : highs) {
    const Record record = RecordAt(at);
    high = HighHalf(HashName(NameAt(at), record.len));
    const uint64_t bit = HashEnds(NameAt(at), record.len) >> bitmap_shift_;
    bitmap_[bit >> 6] |= uint64_t{1} << (bit & 63);
    at = NextRecord(at, record);
  }
  return highs;
}

// A counting sort by bucket, then a sort of each bucket.
void NameSet::SortEntries(absl::Span<const uint32_t> highs) {
  const int bits = std::max(1, Log2Ceil(highs.size()));
  directory_shift_ = 32 - bits;
  // While the entries are put in place, [b + 1] is where the next one of bucket
  // b goes; in the end that is where bucket b + 1 begins.
  directory_.assign((size_t{1} << bits) + 2, 0);
  for (uint32_t high : highs) ++directory_[BucketOf(high) + 2];
  for (size_t i = 2; i < directory_.size(); ++i) {
    directory_[i] += directory_[i - 1];
  }
  entries_.resize(highs.size() + 2);
  uint32_t at = 0;
  for (uint32_t high : highs) {
    entries_[directory_[BucketOf(high) + 1]++] = {high, at};
    at = NextRecord(at, RecordAt(at));
  }
  entries_[highs.size()] = {UINT32_MAX, at};
  entries_[highs.size() + 1] = {0, at};
  for (size_t i = 0; i + 2 < directory_.size(); ++i) {
    if (directory_[i + 1] - directory_[i] < 2) continue;
    std::sort(entries_.begin() + directory_[i],
              entries_.begin() + directory_[i + 1],
              [](const Entry& a, const Entry& b) {
                return a.high != b.high ? a.high < b.high : a.record < b.record;
              });
  }
}

// Of equal names the first is the one that is found.
void NameSet::FindRepeats() {
  for (size_t i = 1; i + 2 < entries_.size(); ++i) {
    const auto [high, at] = entries_[i];
    if (high != entries_[i - 1].high) [[likely]]
      continue;
    const Record record = RecordAt(at);
    const Hit first = FindIn(LowerBound(high), high, NameAt(at), record.len);
    if (first.name == NameAt(at)) continue;
    const size_t first_at = static_cast<size_t>(first.name - arena_.get());
    SetId(static_cast<uint32_t>(first_at - sizeof(Record)),
          first.id | kRepeated);
    repeats_.push_back({first.id, record.id});
  }
}

NameSet::Hit NameSet::Find(std::string_view name) const {
  if (!filter().MayContain(name)) return {};
  const uint32_t high = HighHalf(HashName(name));
  return FindIn(LowerBound(high), high, name.data(),
                static_cast<uint32_t>(name.size()));
}

size_t NameSet::bytes() const {
  return arena_bytes_ + entries_.capacity() * sizeof(Entry) +
         directory_.capacity() * sizeof(uint32_t) +
         bitmap_.capacity() * sizeof(uint64_t);
}

}  // namespace ksweep
