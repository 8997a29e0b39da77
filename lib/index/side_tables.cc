#include "lib/index/side_tables.h"

#include <algorithm>

#include "absl/status/status.h"
#include "lib/index/le.h"

namespace ksweep {
namespace {

constexpr size_t kListsPerSample = 16;
constexpr size_t kSampleBytes = 8;

// The last of `cnt` items, each of `size` bytes and starting with an ascending
// u32, that is not above `offset`; `cnt` if all are.
size_t LastNotAbove(std::string_view items, size_t size, uint32_t offset) {
  const size_t cnt = items.size() / size;
  size_t low = 0, high = cnt;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (LoadLe<uint32_t>(items.data() + middle * size) <= offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? cnt : low - 1;
}

// Small numbers of either sign as small ones without.
uint64_t ZigZag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

char ToUpper(char type) {
  return type >= 'a' && type <= 'z' ? static_cast<char>(type - ('a' - 'A'))
                                    : type;
}

}  // namespace

void TypeRuns::Append(uint32_t offset, char type, std::string* packed) {
  AppendLe(offset, packed);
  packed->push_back(type);
}

absl::StatusOr<TypeRuns> TypeRuns::Make(std::string_view packed) {
  TypeRuns runs;
  LeReader reader(packed);
  while (!reader.rest().empty()) {
    runs.starts_.push_back(reader.Take<uint32_t>());
    runs.types_.push_back(static_cast<char>(reader.Take<uint8_t>()));
  }
  if (!reader.ok() ||
      !std::is_sorted(runs.starts_.begin(), runs.starts_.end())) {
    return absl::DataLossError("the index's table of types is damaged");
  }
  runs.NoteStarts();
  return runs;
}

void TypeRuns::NoteStarts() {
  const uint32_t last = starts_.empty() ? 0 : starts_.back();
  while (last >> directory_shift_ >= kDirectorySize) ++directory_shift_;
  directory_.reserve(kDirectorySize + 1);
  uint32_t cnt = 0;
  for (uint64_t i = 0; i < kDirectorySize; ++i) {
    while (cnt < starts_.size() && starts_[cnt] < i << directory_shift_) ++cnt;
    directory_.push_back(cnt);
  }
  directory_.push_back(static_cast<uint32_t>(starts_.size()));
}

TypeRuns::Cursor TypeRuns::Find(uint32_t offset) const {
  Cursor run;
  run.to = UINT32_MAX;
  if (directory_.empty()) return run;
  const uint32_t bucket =
      std::min(offset >> directory_shift_, kDirectorySize - 1);
  const auto from = starts_.begin();
  const auto behind = std::upper_bound(from + directory_[bucket],
                                       from + directory_[bucket + 1], offset);
  if (behind != starts_.end()) run.to = *behind;
  if (behind == from) return run;
  run.from = behind[-1];
  const char type = types_[static_cast<size_t>(behind - from) - 1];
  run.types[0] = type;
  run.types[1] = ToUpper(type);
  return run;
}

std::string Duplicates::Pack(const Lists& lists) {
  std::string samples, bytes;
  uint32_t last = 0;
  size_t cnt = 0;
  for (const auto& [offset, others] : lists) {
    if (cnt++ % kListsPerSample == 0) {
      AppendLe(offset, &samples);
      AppendLe(static_cast<uint32_t>(bytes.size()), &samples);
      last = offset;
    }
    AppendLeb(offset - last, &bytes);
    AppendLeb(others.size(), &bytes);
    int64_t from = offset;
    for (uint32_t other : others) {
      AppendLeb(ZigZag(other - from), &bytes);
      from = other;
    }
    last = offset;
  }
  std::string packed;
  AppendLe(static_cast<uint32_t>(samples.size() / kSampleBytes), &packed);
  return packed + samples + bytes;
}

absl::StatusOr<Duplicates> Duplicates::Make(std::string_view packed) {
  LeReader reader(packed);
  const uint64_t samples = reader.Take<uint32_t>();
  Duplicates duplicates;
  duplicates.samples_ = reader.TakeBytes(samples * kSampleBytes);
  duplicates.lists_ = reader.rest();
  if (!reader.ok()) {
    return absl::DataLossError("the index's table of duplicates is cut off");
  }
  return duplicates;
}

bool Duplicates::Find(uint32_t offset, uint32_t end,
                      std::vector<uint32_t>* others) const {
  const size_t sample = LastNotAbove(samples_, kSampleBytes, offset);
  if (sample == samples_.size() / kSampleBytes) return true;
  const char* const at = samples_.data() + sample * kSampleBytes;
  uint64_t located = LoadLe<uint32_t>(at);
  const uint32_t place = LoadLe<uint32_t>(at + 4);
  if (place > lists_.size()) return false;
  LeReader reader(lists_.substr(place));
  for (size_t i = 0; i < kListsPerSample && !reader.rest().empty(); ++i) {
    located += reader.TakeLeb();
    if (located > offset) break;
    const uint64_t cnt = reader.TakeLeb();
    int64_t other = static_cast<int64_t>(located);
    for (uint64_t k = 0; k < cnt; ++k) {
      other = static_cast<int64_t>(
          static_cast<uint64_t>(other) +
          static_cast<uint64_t>(UnZigZag(reader.TakeLeb())));
      if (!reader.ok()) return false;
      if (located != offset) continue;
      if (other < 0 || other >= end) return false;
      others->push_back(static_cast<uint32_t>(other));
    }
    if (located == offset) break;
  }
  return reader.ok();
}

}  // namespace ksweep
