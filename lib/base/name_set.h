// A set of names, sorted once, to search very many names in.

#ifndef KSWEEP_LIB_BASE_NAME_SET_H_
#define KSWEEP_LIB_BASE_NAME_SET_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "lib/base/bytes.h"
#include "lib/base/hash.h"

namespace ksweep {

// The names sorted by a hash of theirs, and searched in two steps: a directory
// over the top bits gives the few entries that can match, a binary search for
// the rest of the hash finds the one. A bitmap in front of it turns away most
// of the names that are not in the set, without a branch.
//
// Holds one copy of the names, and some 24 bytes a name beside it; 4 more while
// it is made. Immutable; thread-safe.
class NameSet {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // A name to search.
  struct Probe {
    const char* name;
    uint32_t len;
    uint32_t tag;  // the caller's own; ids come back with it
  };

  // A name found, as it lies in the set.
  struct Hit {
    uint32_t id = kNone;
    bool repeated = false;  // the name was given more than once
    const char* name = nullptr;
  };

  NameSet() : NameSet(absl::Span<const std::string_view>()) {}
  // A name's id is its place in `names`, the first of them if it is there more
  // than once.
  explicit NameSet(absl::Span<const std::string_view> names);
  // The same of name_at(0) … name_at(cnt - 1), each asked for once; together
  // they have `bytes` bytes.
  NameSet(uint32_t cnt, size_t bytes,
          absl::FunctionRef<std::string_view(uint32_t)> name_at);

  // Different names in the set.
  uint32_t size() const { return size_; }
  // Places of names that were given before, in the order of hashes.
  struct Repeat {
    uint32_t id;
    uint32_t place;
  };
  absl::Span<const Repeat> repeats() const { return repeats_; }

  // Turns away most names that are not in the set, without a branch. A copy of
  // it in a hot loop stays in registers. Lives as long as the set.
  class Filter {
   public:
    // For a name with that HashEnds().
    bool MayContain(uint64_t hash) const {
      const uint64_t bit = hash >> shift_;
      return (bitmap_[bit >> 6] >> (bit & 63)) & 1;
    }
    bool MayContain(std::string_view name) const {
      return MayContain(HashEnds(name.data(), name.size()));
    }

   private:
    friend class NameSet;
    Filter(const uint64_t* bitmap, int shift)
        : bitmap_(bitmap), shift_(shift) {}

    const uint64_t* bitmap_;
    int shift_;
  };

  Filter filter() const { return {bitmap_.data(), bitmap_shift_}; }

  // The id is kNone if `name` is not in the set.
  Hit Find(std::string_view name) const;

  // The same for many that have passed the filter, which overlaps the cache
  // misses of up to 32 of them. Calls found(tag, hit) for each probe that is in
  // the set, in their order.
  template <typename Found>
  void FindBatch(absl::Span<const Probe> probes, Found found) const;

  size_t bytes() const;

 private:
  // Sorted by `high`, then by place. Behind the last one are two that no name
  // has: one above all, where searches end, and one below all.
  struct Entry {
    uint32_t high;    // the high half of the hash
    uint32_t record;  // where it lies in the arena
  };
  // One behind the other, each with its name behind it.
  struct Record {
    uint32_t id;  // with kRepeated
    uint32_t len;
  };
  static constexpr uint32_t kRepeated = 1u << 31;
  static constexpr size_t kGroup = 32;
  static constexpr uint32_t kLinearSearch = 8;

  static uint32_t HighHalf(uint64_t hash) {
    return static_cast<uint32_t>(hash >> 32);
  }

  void CopyNames(uint32_t cnt, size_t bytes,
                 absl::FunctionRef<std::string_view(uint32_t)> name_at);
  std::vector<uint32_t> HashNames(uint32_t cnt);
  void SortEntries(absl::Span<const uint32_t> highs);
  void FindRepeats();

  Record RecordAt(uint32_t at) const {
    Record record;
    std::memcpy(&record, arena_.get() + at, sizeof(record));
    return record;
  }
  void SetId(uint32_t at, uint32_t id) {
    std::memcpy(arena_.get() + at, &id, sizeof(id));
  }
  const char* NameAt(uint32_t at) const {
    return arena_.get() + at + sizeof(Record);
  }
  static uint32_t NextRecord(uint32_t at, const Record& record) {
    return at + static_cast<uint32_t>(sizeof(record)) + record.len;
  }
  uint32_t BucketOf(uint32_t high) const { return high >> directory_shift_; }
  const Entry* LowerBound(uint32_t high) const;
  Hit FindIn(const Entry* entry, uint32_t high, const char* name,
             uint32_t len) const;

  std::unique_ptr<char[]> arena_;
  size_t arena_bytes_ = 0;
  std::vector<Entry> entries_;
  std::vector<uint32_t> directory_;
  std::vector<uint64_t> bitmap_;
  std::vector<Repeat> repeats_;
  uint32_t size_ = 0;
  int directory_shift_ = 31;
  int bitmap_shift_ = 58;
};

// The first entry whose hash is not below. A bucket holds about one entry;
// longer ones are searched in halves.
inline const NameSet::Entry* NameSet::LowerBound(uint32_t high) const {
  const uint32_t* const bucket = &directory_[BucketOf(high)];
  const Entry* entry = entries_.data() + bucket[0];
  if (bucket[1] - bucket[0] > kLinearSearch) [[unlikely]] {
    return std::lower_bound(
        entry, entries_.data() + bucket[1], high,
        [](const Entry& e, uint32_t value) { return e.high < value; });
  }
  while (entry->high < high) ++entry;
  return entry;
}

inline NameSet::Hit NameSet::FindIn(const Entry* entry, uint32_t high,
                                    const char* name, uint32_t len) const {
  for (; entry->high == high; ++entry) {
    const Record record = RecordAt(entry->record);
    const char* const stored = NameAt(entry->record);
    if (record.len == len && SameBytes(stored, name, len)) {
      return {record.id & ~kRepeated, (record.id & kRepeated) != 0, stored};
    }
  }
  return {};
}

template <typename Found>
void NameSet::FindBatch(absl::Span<const Probe> probes, Found found) const {
  uint32_t high[kGroup];
  const Entry* entry[kGroup];
  for (size_t start = 0; start < probes.size(); start += kGroup) {
    const size_t cnt = std::min(kGroup, probes.size() - start);
    const Probe* const group = probes.data() + start;
    for (size_t i = 0; i < cnt; ++i) {
      high[i] = HighHalf(HashName(group[i].name, group[i].len));
      __builtin_prefetch(&directory_[BucketOf(high[i])]);
    }
    for (size_t i = 0; i < cnt; ++i) {
      __builtin_prefetch(entries_.data() + directory_[BucketOf(high[i])]);
    }
    for (size_t i = 0; i < cnt; ++i) {
      entry[i] = LowerBound(high[i]);
      // Where nothing is found this is the record of another name.
      const char* const record = arena_.get() + entry[i]->record;
      __builtin_prefetch(record);
      __builtin_prefetch(record + 64);
    }
    for (size_t i = 0; i < cnt; ++i) {
      const Hit hit = FindIn(entry[i], high[i], group[i].name, group[i].len);
      if (hit.id != kNone) found(group[i].tag, hit);
    }
  }
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_NAME_SET_H_
