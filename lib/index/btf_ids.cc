#include "lib/index/btf_ids.h"

#include <algorithm>
#include <bit>

#include "absl/status/status.h"
#include "lib/index/le.h"
#include "lib/index/packed_array.h"

namespace ksweep {
namespace {

uint64_t CountBlocks(uint64_t words, uint32_t words_per_count) {
  return (words + words_per_count - 1) / words_per_count;
}

}  // namespace

std::string BtfIds::Pack(absl::Span<const Item> items) {
  const uint32_t words = items.empty() ? 0 : items.back().id / 64 + 1;
  std::vector<uint64_t> bits(words);
  std::vector<uint32_t> offsets;
  uint32_t highest = 0;
  for (const Item& item : items) {
    bits[item.id / 64] |= uint64_t{1} << item.id % 64;
    offsets.push_back(item.offset);
    highest = std::max(highest, item.offset);
  }
  const unsigned offset_bits = BitsFor(highest);
  std::string packed, counts;
  AppendLe(words, &packed);
  AppendLe(static_cast<uint32_t>(items.size()), &packed);
  packed.push_back(static_cast<char>(offset_bits));
  uint32_t cnt = 0;
  for (uint32_t i = 0; i < words; ++i) {
    AppendLe(bits[i], &packed);
    if (i % kWordsPerCount == 0) AppendLe(cnt, &counts);
    cnt += static_cast<uint32_t>(std::popcount(bits[i]));
  }
  return packed + counts + PackArray(offsets, offset_bits);
}

absl::StatusOr<BtfIds> BtfIds::Make(std::string_view packed) {
  LeReader reader(packed);
  BtfIds ids;
  ids.words_ = reader.Take<uint32_t>();
  ids.items_ = reader.Take<uint32_t>();
  ids.offset_bits_ = reader.Take<uint8_t>();
  if (ids.offset_bits_ < 1 || ids.offset_bits_ > 32) {
    return absl::DataLossError("the index's BTF ids have an unknown width");
  }
  ids.bits_ = reader.TakeBytes(uint64_t{ids.words_} * 8).data();
  ids.counts_ =
      reader.TakeBytes(CountBlocks(ids.words_, kWordsPerCount) * 4).data();
  ids.offsets_ =
      reader.TakeBytes(PackedBytes(ids.items_, ids.offset_bits_)).data();
  if (!reader.ok() || !reader.rest().empty()) {
    return absl::DataLossError("the index's BTF ids have another size");
  }
  return ids;
}

std::optional<uint32_t> BtfIds::Find(uint32_t id) const {
  const uint32_t word = id / 64;
  if (word >= words_) return std::nullopt;
  const uint64_t bits = LoadLe<uint64_t>(bits_ + 8 * size_t{word});
  if (!(bits >> id % 64 & 1)) return std::nullopt;
  const uint32_t block = word / kWordsPerCount;
  uint64_t rank = LoadLe<uint32_t>(counts_ + 4 * size_t{block});
  for (uint32_t i = block * kWordsPerCount; i < word; ++i) {
    rank += static_cast<unsigned>(
        std::popcount(LoadLe<uint64_t>(bits_ + 8 * size_t{i})));
  }
  rank += static_cast<unsigned>(
      std::popcount(bits & ((uint64_t{1} << id % 64) - 1)));
  if (rank >= items_) return std::nullopt;
  return static_cast<uint32_t>(LoadPacked(offsets_, rank, offset_bits_));
}

void BtfIds::ForEach(absl::FunctionRef<void(uint32_t, uint32_t)> visit) const {
  for (uint32_t word = 0; word < words_; ++word) {
    uint64_t bits = LoadLe<uint64_t>(bits_ + 8 * size_t{word});
    for (; bits != 0; bits &= bits - 1) {
      const uint32_t id =
          word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
      const std::optional<uint32_t> offset = Find(id);
      // One that is not there is below the end of no table.
      visit(id, offset.value_or(UINT32_MAX));
    }
  }
}

}  // namespace ksweep
