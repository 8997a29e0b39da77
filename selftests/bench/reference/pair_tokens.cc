#include "selftests/bench/reference/pair_tokens.h"

#include <algorithm>

namespace ksweep::bench {
namespace {

// How often each pair of bytes occurs. A pair is first + 256 * second, and of
// equally frequent ones the lowest wins: both decide what the table looks like.
class PairCounts {
 public:
  PairCounts() : counts_(kTokenCnt * kTokenCnt) {}

  void Add(absl::Span<const uint8_t> name, int by) {
    for (size_t i = 0; i + 1 < name.size(); ++i) {
      counts_[name[i] + kTokenCnt * name[i + 1]] += by;
    }
  }

  size_t Best() const {
    return static_cast<size_t>(
        std::max_element(counts_.begin(), counts_.end()) - counts_.begin());
  }

  int Get(size_t pair) const { return counts_[pair]; }

 private:
  std::vector<int> counts_;
};

// The first place in [begin, end) where `first` and `second` follow each other;
// `end` if there is none.
uint8_t* FindPair(uint8_t* begin, uint8_t* end, uint8_t first, uint8_t second) {
  for (; begin + 1 < end; ++begin) {
    if (begin[0] == first && begin[1] == second) return begin;
  }
  return end;
}

// Puts `token` for each pair, from left to right; returns the new end.
uint8_t* ReplacePairs(uint8_t* at, uint8_t* end, uint8_t first, uint8_t second,
                      uint8_t token) {
  uint8_t* out = at;
  while (at < end) {
    if (at + 1 < end && at[0] == first && at[1] == second) {
      *out++ = token;
      at += 2;
    } else {
      *out++ = *at++;
    }
  }
  return out;
}

void ReplaceEverywhere(uint8_t first, uint8_t second, uint8_t token,
                       PackedNames* names, PairCounts* counts) {
  for (size_t i = 0; i < names->begins.size(); ++i) {
    uint8_t* const begin = names->bytes.data() + names->begins[i];
    uint8_t* const end = begin + names->lens[i];
    uint8_t* const at = FindPair(begin, end, first, second);
    if (at == end) continue;
    counts->Add(names->Get(i), -1);
    names->lens[i] = static_cast<uint16_t>(
        ReplacePairs(at, end, first, second, token) - begin);
    counts->Add(names->Get(i), 1);
  }
}

}  // namespace

Tokens Compress(PackedNames* names) {
  Tokens tokens;
  PairCounts counts;
  for (size_t i = 0; i < names->begins.size(); ++i) {
    counts.Add(names->Get(i), 1);
    for (uint8_t byte : names->Get(i)) tokens[byte] = static_cast<char>(byte);
  }
  for (size_t token = kTokenCnt; token-- > 0;) {
    if (!tokens[token].empty()) continue;
    const size_t pair = counts.Best();
    if (counts.Get(pair) == 0) break;
    const auto first = static_cast<uint8_t>(pair % kTokenCnt);
    const auto second = static_cast<uint8_t>(pair / kTokenCnt);
    tokens[token] = tokens[first] + tokens[second];
    ReplaceEverywhere(first, second, static_cast<uint8_t>(token), names,
                      &counts);
  }
  return tokens;
}

}  // namespace ksweep::bench
