#include "ksweep/diff.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace ksweep {
namespace {

bool HasAlias(const Target& target, std::string_view name) {
  return std::find(target.aliases.begin(), target.aliases.end(), name) !=
         target.aliases.end();
}

// What targets are in order of.
std::tuple<uint64_t, std::string_view> PlaceKey(const Target& target) {
  return {target.addr, target.module};
}

bool IsSameFunction(const Target& a, const Target& b) {
  return PlaceKey(a) == PlaceKey(b) &&
         (a.name == b.name || HasAlias(a, b.name) || HasAlias(b, a.name));
}

std::tuple<std::string_view, std::string_view> NameKey(const Target& target) {
  return {target.module, target.name};
}

class Differ {
 public:
  Differ(const Resolution& older, const Resolution& newer)
      : older_(older.targets()), newer_(newer.targets()) {}

  // Both have addresses.
  ResolutionDiff ByAddress() &&;
  ResolutionDiff ByName() &&;

 private:
  void PairByAddress();
  // Pairs the rest; what is left of it is added or dropped.
  void PairRestByName(std::vector<TargetPair>* pairs);
  static void SortByName(const std::vector<Target>& targets,
                         std::vector<uint32_t>* indices);

  const std::vector<Target>& older_;
  const std::vector<Target>& newer_;
  // Not paired.
  std::vector<uint32_t> old_rest_;
  std::vector<uint32_t> new_rest_;
  ResolutionDiff diff_;
};

ResolutionDiff Differ::ByAddress() && {
  PairByAddress();
  PairRestByName(&diff_.moved);
  return std::move(diff_);
}

ResolutionDiff Differ::ByName() && {
  for (uint32_t i = 0; i < older_.size(); ++i) old_rest_.push_back(i);
  for (uint32_t i = 0; i < newer_.size(); ++i) new_rest_.push_back(i);
  PairRestByName(&diff_.kept);
  return std::move(diff_);
}

void Differ::PairByAddress() {
  uint32_t i = 0;
  uint32_t k = 0;
  while (i < older_.size() || k < newer_.size()) {
    if (k == newer_.size() ||
        (i < older_.size() && PlaceKey(older_[i]) < PlaceKey(newer_[k]))) {
      old_rest_.push_back(i++);
    } else if (i == older_.size() ||
               PlaceKey(newer_[k]) < PlaceKey(older_[i])) {
      new_rest_.push_back(k++);
    } else if (IsSameFunction(older_[i], newer_[k])) {
      diff_.kept.push_back({i++, k++});
    } else {
      old_rest_.push_back(i++);
      new_rest_.push_back(k++);
    }
  }
}

// Stable, so that those of one name stay in address order.
void Differ::SortByName(const std::vector<Target>& targets,
                        std::vector<uint32_t>* indices) {
  std::stable_sort(indices->begin(), indices->end(),
                   [&targets](uint32_t a, uint32_t b) {
                     return NameKey(targets[a]) < NameKey(targets[b]);
                   });
}

void Differ::PairRestByName(std::vector<TargetPair>* pairs) {
  SortByName(older_, &old_rest_);
  SortByName(newer_, &new_rest_);
  auto old_one = old_rest_.begin();
  for (uint32_t new_one : new_rest_) {
    const auto key = NameKey(newer_[new_one]);
    while (old_one != old_rest_.end() && NameKey(older_[*old_one]) < key) {
      diff_.dropped.push_back(*old_one++);
    }
    if (old_one != old_rest_.end() && NameKey(older_[*old_one]) == key) {
      pairs->push_back({*old_one++, new_one});
    } else {
      diff_.added.push_back(new_one);
    }
  }
  diff_.dropped.insert(diff_.dropped.end(), old_one, old_rest_.end());

  std::sort(diff_.added.begin(), diff_.added.end());
  std::sort(diff_.dropped.begin(), diff_.dropped.end());
  std::sort(pairs->begin(), pairs->end(),
            [](const TargetPair& a, const TargetPair& b) {
              return a.newer < b.newer;
            });
}

}  // namespace

ResolutionDiff Diff(const Resolution& older, const Resolution& newer) {
  Differ differ(older, newer);
  if (older.by_name() || newer.by_name()) {
    return std::move(differ).ByName();
  }
  return std::move(differ).ByAddress();
}

}  // namespace ksweep
