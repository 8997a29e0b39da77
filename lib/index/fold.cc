#include "lib/index/fold.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "lib/base/abseil.h"

namespace ksweep {
namespace {

// A pad's function is among the rows that follow it: only aliases are between.
constexpr size_t kLookAhead = 24;
constexpr uint64_t kMaxDistance = 4096;
// Rounds of taking back what does not come out in the same place, before all is
// taken back. Two are enough for real kernels.
constexpr int kMaxRounds = 8;

class Folder {
 public:
  explicit Folder(absl::Span<const Row> rows)
      : rows_(rows), base_of_(rows.size(), kNone) {
    folding_.states.assign(rows.size(), RowState::kPlain);
  }

  Folding Run();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t MostFrequentDistance() const;
  void FoldAll();
  void Unfold(size_t pad);
  void UnfoldAll();
  bool UnfoldMixedNames();
  bool UnfoldMisplaced();
  std::vector<uint32_t> Merged() const;
  bool IsFunctionOf(size_t function, size_t pad, uint64_t distance) const;

  template <typename Visit>
  void ForPads(Visit visit) const {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (IsPadName(rows_[i].name)) visit(i);
    }
  }

  absl::Span<const Row> rows_;
  std::vector<uint32_t> base_of_;  // of folded rows
  Folding folding_;
};

bool Folder::IsFunctionOf(size_t function, size_t pad,
                          uint64_t distance) const {
  const Row& f = rows_[function];
  const Row& p = rows_[pad];
  return f.addr == p.addr + distance && f.addr > p.addr && f.type == p.type &&
         f.name == p.name.substr(kPadPrefix.size());
}

uint32_t Folder::MostFrequentDistance() const {
  std::map<uint64_t, uint64_t> counts;
  ForPads([&](size_t pad) {
    const size_t end = std::min(rows_.size(), pad + 1 + kLookAhead);
    for (size_t i = pad + 1; i < end; ++i) {
      const uint64_t distance = rows_[i].addr - rows_[pad].addr;
      if (rows_[i].segment != rows_[pad].segment || distance > kMaxDistance)
        break;
      if (IsFunctionOf(i, pad, distance)) ++counts[distance];
    }
  });
  const auto best = std::max_element(
      counts.begin(), counts.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == counts.end() ? 0 : static_cast<uint32_t>(best->first);
}

void Folder::FoldAll() {
  const uint64_t distance = folding_.distance;
  ForPads([&](size_t pad) {
    const size_t end = std::min(rows_.size(), pad + 1 + kLookAhead);
    for (size_t i = pad + 1; i < end; ++i) {
      if (rows_[i].segment != rows_[pad].segment) return;
      if (rows_[i].addr - rows_[pad].addr > distance) return;
      if (folding_.states[i] != RowState::kPlain) continue;
      if (!IsFunctionOf(i, pad, distance)) continue;
      folding_.states[i] = RowState::kWithPad;
      folding_.states[pad] = RowState::kFolded;
      base_of_[pad] = static_cast<uint32_t>(i);
      ++folding_.folded;
      return;
    }
  });
}

void Folder::Unfold(size_t pad) {
  folding_.states[base_of_[pad]] = RowState::kPlain;
  folding_.states[pad] = RowState::kPlain;
  base_of_[pad] = kNone;
  --folding_.folded;
}

void Folder::UnfoldAll() {
  ForPads([this](size_t pad) {
    if (base_of_[pad] != kNone) Unfold(pad);
  });
}

// A name that is found both ways would need two searches.
bool Folder::UnfoldMixedNames() {
  absl::flat_hash_set<absl::string_view> plain;
  ForPads([&](size_t pad) {
    if (base_of_[pad] == kNone) plain.insert(Av(rows_[pad].name));
  });
  bool changed = false;
  ForPads([&](size_t pad) {
    if (base_of_[pad] == kNone || !plain.contains(Av(rows_[pad].name))) return;
    Unfold(pad);
    changed = true;
  });
  return changed;
}

// The rows as a reader puts them together: records and the pads folded into
// them, by segment and address, records first.
std::vector<uint32_t> Folder::Merged() const {
  std::vector<uint32_t> records, pads, pad_of(rows_.size(), kNone);
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    if (base_of_[i] == kNone) {
      records.push_back(i);
    } else {
      pad_of[base_of_[i]] = i;
    }
  }
  for (uint32_t record : records) {
    if (pad_of[record] != kNone) pads.push_back(pad_of[record]);
  }
  std::vector<uint32_t> merged(rows_.size());
  std::merge(records.begin(), records.end(), pads.begin(), pads.end(),
             merged.begin(), [this](uint32_t a, uint32_t b) {
               return std::make_pair(rows_[a].segment, rows_[a].addr) <
                      std::make_pair(rows_[b].segment, rows_[b].addr);
             });
  return merged;
}

bool Folder::UnfoldMisplaced() {
  const std::vector<uint32_t> merged = Merged();
  bool changed = false;
  for (size_t i = 0; i < merged.size(); ++i) {
    if (merged[i] == i) continue;
    for (size_t row : {size_t{merged[i]}, i}) {
      if (base_of_[row] == kNone) continue;
      Unfold(row);
      changed = true;
    }
  }
  return changed;
}

Folding Folder::Run() {
  folding_.distance = MostFrequentDistance();
  if (folding_.distance == 0) return std::move(folding_);
  FoldAll();
  for (int round = 0;; ++round) {
    const bool mixed = UnfoldMixedNames();
    const bool misplaced = UnfoldMisplaced();
    if (!mixed && !misplaced) break;
    if (round == kMaxRounds) {
      UnfoldAll();
      break;
    }
  }
  if (folding_.folded == 0) folding_.distance = 0;
  return std::move(folding_);
}

}  // namespace

Folding FoldPads(absl::Span<const Row> rows) { return Folder(rows).Run(); }

}  // namespace ksweep
