#include "lib/index/suffix_finder.h"

#include <bit>

#include "lib/base/hash.h"

namespace ksweep {
namespace {

// Of an end that is one byte longer.
uint64_t Longer(uint64_t hash, char byte) {
  return (hash ^ static_cast<unsigned char>(byte)) * 0x9e3779b97f4a7c15ULL +
         0x7f4a7c15ULL;
}

uint64_t HashOf(std::string_view name) {
  uint64_t hash = 0;
  for (size_t at = name.size(); at-- > 0;) hash = Longer(hash, name[at]);
  return hash;
}

}  // namespace

SuffixFinder::SuffixFinder(size_t names)
    : entries_(std::bit_ceil(2 * names + 2)),
      mask_(entries_.size() - 1),
      filter_(entries_.size() / 16 + 1),
      filter_mask_(std::bit_floor(filter_.size()) - 1) {}

const SuffixFinder::Entry* SuffixFinder::Lookup(uint64_t hash,
                                                std::string_view name) const {
  for (size_t at = HashWord(hash);; ++at) {
    const Entry& entry = entries_[at & mask_];
    if (entry.name.empty() || entry.name == name) return &entry;
  }
}

void SuffixFinder::Add(std::string_view name, uint32_t number) {
  const uint64_t hash = HashOf(name);
  const Entry* const entry = Lookup(hash, name);
  if (!entry->name.empty()) return;
  entries_[static_cast<size_t>(entry - entries_.data())] = {name, number};
  filter_[(hash >> 32) / 64 & filter_mask_] |= uint64_t{1} << (hash >> 32) % 64;
}

void SuffixFinder::Find(
    std::string_view name,
    absl::FunctionRef<bool(size_t start, uint32_t number)> accept) {
  hashes_.resize(name.size());
  uint64_t hash = 0;
  for (size_t at = name.size(); at-- > 0;) {
    hashes_[at] = hash = Longer(hash, name[at]);
  }
  for (size_t at = 0; at < name.size(); ++at) {
    if ((at > 0 && name[at - 1] != '_') || !MayHave(hashes_[at])) continue;
    const Entry* const entry = Lookup(hashes_[at], name.substr(at));
    if (!entry->name.empty() && accept(at, entry->number)) return;
  }
}

}  // namespace ksweep
