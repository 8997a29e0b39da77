// A set of names, sorted once, to search very many names in.

#ifndef KSWEEP_LIB_BASE_NAME_SET_H_
#define KSWEEP_LIB_BASE_NAME_SET_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "lib/base/hash.h"

namespace ksweep {

// The names sorted by a 64-bit hash of theirs, and searched in two steps: a
// directory over the top bits gives the few entries that can match, a binary
// search for the rest of the hash finds the one. A bitmap in front of it turns
// away most of the names that are not in the set, without a branch.
//
// Holds one copy of the names, and some 24 bytes a name beside it. Immutable;
// thread-safe.
class NameSet {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // A name to search, with the hash that MayContain() was asked about.
  struct Probe {
    const char* name;
    uint32_t len;
    uint32_t tag;  // the caller's own; ids come back with it
    uint64_t hash;
  };

  // A name found, as it lies in the set.
  struct Hit {
    uint32_t id = kNone;
    const char* name = nullptr;
  };

  NameSet() : NameSet(absl::Span<const std::string_view>()) {}
  explicit NameSet(absl::Span<const std::string_view> names)
      : NameSet(names, nullptr) {}
  // Equal names have one id. Ids are 0 … size() - 1 in the order in which names
  // are first given; ids, if not null, gets that of each of `names`.
  NameSet(absl::Span<const std::string_view> names, std::vector<uint32_t>* ids);

  // Different names in the set.
  uint32_t size() const { return size_; }

  bool MayContain(uint64_t hash) const {
    const uint64_t bit = hash >> bitmap_shift_;
    return (bitmap_[bit >> 6] >> (bit & 63)) & 1;
  }

  // The id is kNone if `name` is not in the set.
  Hit Find(std::string_view name) const;

  // The same for many at a time, which overlaps the cache misses of up to 32.
  // Calls found(tag, hit) for each probe that is in the set, in their order.
  template <typename Found>
  void FindBatch(absl::Span<const Probe> probes, Found found) const;

  size_t bytes() const;

 private:
  // Sorted by hash: by the directory's bucket, then by `low`.
  struct Entry {
    uint32_t low;     // the low half of the hash
    uint32_t record;  // in units of kRecordUnit bytes
  };
  struct Record {
    uint32_t id;
    uint32_t len;
    // then the bytes
  };
  static constexpr size_t kRecordUnit = 4;
  static constexpr size_t kGroup = 32;

  void CopyNames(absl::Span<const std::string_view> names);
  void FillBitmap(absl::Span<const uint64_t> hashes);
  void SortEntries(absl::Span<const uint64_t> hashes,
                   absl::Span<const uint32_t> records);
  void AssignIds(absl::Span<const uint32_t> records,
                 std::vector<uint32_t>* ids);

  const Record* RecordAt(uint32_t unit) const {
    return reinterpret_cast<const Record*>(arena_.get() + unit * kRecordUnit);
  }
  Record* RecordAt(uint32_t unit) {
    return reinterpret_cast<Record*>(arena_.get() + unit * kRecordUnit);
  }
  static const char* Bytes(const Record* record) {
    return reinterpret_cast<const char*>(record + 1);
  }
  // The first entry of [begin, end) whose low half is not below.
  const Entry* LowerBound(uint32_t begin, uint32_t end, uint32_t low) const;
  Hit FindIn(const Entry* entry, const Entry* end, const Probe& probe) const;

  std::unique_ptr<char[]> arena_;
  size_t arena_bytes_ = 0;
  std::vector<Entry> entries_;
  std::vector<uint32_t> directory_;
  std::vector<uint64_t> bitmap_;
  uint32_t size_ = 0;
  int directory_shift_ = 63;
  int bitmap_shift_ = 58;
};

template <typename Found>
void NameSet::FindBatch(absl::Span<const Probe> probes, Found found) const {
  if (entries_.empty()) return;
  const Entry* begin[kGroup];
  const Entry* end[kGroup];
  for (size_t start = 0; start < probes.size(); start += kGroup) {
    const size_t cnt = std::min(kGroup, probes.size() - start);
    const Probe* group = probes.data() + start;
    for (size_t i = 0; i < cnt; ++i) {
      __builtin_prefetch(&directory_[group[i].hash >> directory_shift_]);
    }
    for (size_t i = 0; i < cnt; ++i) {
      const uint32_t* bucket = &directory_[group[i].hash >> directory_shift_];
      begin[i] = entries_.data() + bucket[0];
      end[i] = entries_.data() + bucket[1];
      __builtin_prefetch(begin[i]);
    }
    for (size_t i = 0; i < cnt; ++i) {
      const uint32_t low = static_cast<uint32_t>(group[i].hash);
      begin[i] =
          LowerBound(static_cast<uint32_t>(begin[i] - entries_.data()),
                     static_cast<uint32_t>(end[i] - entries_.data()), low);
      if (begin[i] == end[i] || begin[i]->low != low) {
        begin[i] = nullptr;
        continue;
      }
      const char* record =
          reinterpret_cast<const char*>(RecordAt(begin[i]->record));
      __builtin_prefetch(record);
      __builtin_prefetch(record + 64);
    }
    for (size_t i = 0; i < cnt; ++i) {
      if (begin[i] == nullptr) continue;
      const Hit hit = FindIn(begin[i], end[i], group[i]);
      if (hit.id != kNone) found(group[i].tag, hit);
    }
  }
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_NAME_SET_H_
