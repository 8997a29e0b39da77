// Many globs against one name.

#ifndef KSWEEP_LIB_BASE_GLOB_SET_H_
#define KSWEEP_LIB_BASE_GLOB_SET_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace ksweep {

// A set of patterns that have passed CheckGlob(). Patterns are filed under the
// literal bytes they begin with, else those they end with, so that a name is
// compared only to patterns that share these: the cost of a name hardly grows
// with the number of patterns. Thread-safe once filled.
class GlobSet {
 public:
  // Returns the pattern's index.
  uint32_t Add(std::string_view pattern);

  size_t size() const { return globs_.size(); }
  bool empty() const { return globs_.empty(); }
  // True if some pattern is a mere `*`, so that every name matches.
  bool has_star() const { return has_star_; }

  // Calls visit(index) for each pattern that matches, in no certain order.
  // Stops when it returns false.
  template <typename Visit>
  void ForEachMatch(std::string_view name, Visit visit) const;

  bool MatchesAny(std::string_view name) const {
    bool any = false;
    ForEachMatch(name, [&any](uint32_t) {
      any = true;
      return false;
    });
    return any;
  }

 private:
  struct Glob {
    std::string pattern;
    bool is_star = false;
  };
  // Patterns whose literal head (or tail) has at least `length` bytes, by
  // these bytes. Lengths 1 to 8.
  using Files = absl::flat_hash_map<uint64_t, std::vector<uint32_t>>;

  static uint64_t HeadWord(std::string_view name, size_t length);
  static uint64_t TailWord(std::string_view name, size_t length);
  bool Matches(uint32_t index, std::string_view name) const;

  template <typename Visit>
  bool VisitAll(const std::vector<uint32_t>& indices, std::string_view name,
                Visit& visit) const;

  std::vector<Glob> globs_;
  std::array<Files, 9> by_head_;
  std::array<Files, 9> by_tail_;
  std::vector<uint32_t> others_;
  bool has_star_ = false;
};

template <typename Visit>
bool GlobSet::VisitAll(const std::vector<uint32_t>& indices,
                       std::string_view name, Visit& visit) const {
  for (uint32_t index : indices) {
    if (Matches(index, name) && !visit(index)) return false;
  }
  return true;
}

template <typename Visit>
void GlobSet::ForEachMatch(std::string_view name, Visit visit) const {
  if (!VisitAll(others_, name, visit)) return;
  for (size_t length = 1; length <= 8 && length <= name.size(); ++length) {
    const Files& heads = by_head_[length];
    if (!heads.empty()) {
      auto it = heads.find(HeadWord(name, length));
      if (it != heads.end() && !VisitAll(it->second, name, visit)) return;
    }
    const Files& tails = by_tail_[length];
    if (!tails.empty()) {
      auto it = tails.find(TailWord(name, length));
      if (it != tails.end() && !VisitAll(it->second, name, visit)) return;
    }
  }
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_GLOB_SET_H_
