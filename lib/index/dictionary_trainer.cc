#include "lib/index/dictionary_trainer.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "lib/index/dictionary.h"
#include "lib/index/tokenizer.h"

namespace ksweep {
namespace {

// Bytes that get a piece of their own even if they are rare: an escape costs
// two codes.
bool IsUsualByte(unsigned char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == '.' ||
         byte == '$';
}

std::vector<std::string> SingleBytes(absl::Span<const TrainingName> names) {
  std::array<bool, 256> used = {};
  for (const TrainingName& name : names) {
    for (unsigned char byte : name.name) used[byte] = true;
  }
  std::vector<std::string> singles;
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<unsigned char>(byte);
    if (used[byte] || IsUsualByte(c)) {
      singles.emplace_back(1, static_cast<char>(c));
    }
  }
  return singles;
}

// Candidates by joining the most frequent neighbours again and again, many
// pairs at a time ("re-pair").
class Joiner {
 public:
  Joiner(absl::Span<const TrainingName> names,
         absl::Span<const std::string> singles)
      : pieces_(singles.begin(), singles.end()) {
    std::array<uint16_t, 256> code_of = {};
    for (size_t i = 0; i < singles.size(); ++i) {
      code_of[static_cast<unsigned char>(singles[i][0])] =
          static_cast<uint16_t>(i);
    }
    for (const TrainingName& name : names) {
      std::vector<uint16_t> codes;
      for (unsigned char byte : name.name) codes.push_back(code_of[byte]);
      texts_.push_back({std::move(codes), name.weight});
    }
  }

  std::vector<std::string> Run(size_t enough) {
    while (pieces_.size() < enough) {
      if (!JoinBatch(enough - pieces_.size())) break;
    }
    std::sort(pieces_.begin(), pieces_.end());
    pieces_.erase(std::unique(pieces_.begin(), pieces_.end()), pieces_.end());
    return std::move(pieces_);
  }

 private:
  using Pair = uint32_t;  // two codes
  struct Counted {
    uint64_t count;
    Pair pair;
  };

  static Pair PairOf(uint16_t a, uint16_t b) {
    return static_cast<Pair>(a) << 16 | b;
  }

  std::vector<Counted> CountPairs() const;
  bool JoinBatch(size_t max);
  void Replace(const absl::flat_hash_map<Pair, uint16_t>& joined);

  std::vector<std::string> pieces_;
  std::vector<std::pair<std::vector<uint16_t>, uint64_t>> texts_;
};

std::vector<Joiner::Counted> Joiner::CountPairs() const {
  absl::flat_hash_map<Pair, uint64_t> counts;
  for (const auto& [codes, weight] : texts_) {
    for (size_t i = 0; i + 1 < codes.size(); ++i) {
      if (pieces_[codes[i]].size() + pieces_[codes[i + 1]].size() <=
          kMaxPieceBytes) {
        counts[PairOf(codes[i], codes[i + 1])] += weight;
      }
    }
  }
  std::vector<Counted> sorted;
  for (const auto& [pair, count] : counts) {
    if (count > 1) sorted.push_back({count, pair});
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const Counted& a, const Counted& b) {
              return a.count != b.count ? a.count > b.count : a.pair < b.pair;
            });
  return sorted;
}

// Joins the most frequent pairs, down to a part of the first one's count, so
// that those joined do not differ much from one by one.
bool Joiner::JoinBatch(size_t max) {
  const std::vector<Counted> pairs = CountPairs();
  if (pairs.empty()) return false;
  const uint64_t least = pairs[0].count - pairs[0].count / 8;
  absl::flat_hash_map<Pair, uint16_t> joined;
  for (const Counted& pair : pairs) {
    if (joined.size() == std::min<size_t>(max, 512) || pair.count < least) {
      break;
    }
    joined[pair.pair] = static_cast<uint16_t>(pieces_.size());
    pieces_.push_back(pieces_[pair.pair >> 16] + pieces_[pair.pair & 0xffff]);
  }
  Replace(joined);
  return true;
}

void Joiner::Replace(const absl::flat_hash_map<Pair, uint16_t>& joined) {
  for (auto& [codes, weight] : texts_) {
    size_t to = 0;
    for (size_t from = 0; from < codes.size(); ++from, ++to) {
      codes[to] = codes[from];
      if (from + 1 == codes.size()) continue;
      const auto found = joined.find(PairOf(codes[from], codes[from + 1]));
      if (found == joined.end()) continue;
      codes[to] = found->second;
      ++from;
    }
    codes.resize(to);
  }
}

// Chooses among the candidates by what the names would lose without each.
class Chooser {
 public:
  Chooser(absl::Span<const TrainingName> names,
          std::vector<std::string> candidates, size_t goal)
      : names_(names), pieces_(std::move(candidates)), goal_(goal) {}

  std::vector<std::string> Run(int rounds) {
    // Shrinks by the same factor each round, and chooses once more at the end.
    for (int round = 0; round <= rounds; ++round) {
      const size_t left = static_cast<size_t>(std::max(rounds - round - 1, 0));
      size_t keep = pieces_.size();
      if (keep > goal_) {
        keep = goal_ + (keep - goal_) * left / (left + 1);
      }
      Choose(keep);
    }
    return std::move(pieces_);
  }

 private:
  struct Scored {
    uint64_t loss;
    uint32_t piece;
  };

  void Choose(size_t keep);
  std::vector<uint64_t> CountUses(Tokenizer* tokenizer) const;

  absl::Span<const TrainingName> names_;
  std::vector<std::string> pieces_;
  size_t goal_;
};

std::vector<uint64_t> Chooser::CountUses(Tokenizer* tokenizer) const {
  std::vector<uint64_t> uses(pieces_.size());
  std::vector<uint16_t> codes;
  for (const TrainingName& name : names_) {
    codes.clear();
    tokenizer->Encode(name.name, &codes);
    for (uint16_t code : codes) uses[code] += name.weight;
  }
  return uses;
}

void Chooser::Choose(size_t keep) {
  const std::vector<std::string_view> views(pieces_.begin(), pieces_.end());
  Tokenizer tokenizer(views);
  const std::vector<uint64_t> uses = CountUses(&tokenizer);
  std::vector<Scored> scored;
  for (uint32_t i = 0; i < pieces_.size(); ++i) {
    const uint64_t loss =
        pieces_[i].size() == 1
            ? UINT64_MAX
            : uses[i] * (tokenizer.CostWithoutItself(pieces_[i]) - 1);
    scored.push_back({loss, i});
  }
  std::sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) {
    return a.loss != b.loss ? a.loss > b.loss : a.piece < b.piece;
  });
  scored.resize(std::min(keep, scored.size()));
  while (!scored.empty() && scored.back().loss == 0) scored.pop_back();
  std::vector<std::string> kept;
  for (const Scored& s : scored) kept.push_back(std::move(pieces_[s.piece]));
  std::sort(kept.begin(), kept.end());
  pieces_ = std::move(kept);
}

}  // namespace

std::vector<std::string> TrainDictionary(absl::Span<const TrainingName> names,
                                         const TrainingEffort& effort) {
  std::vector<std::string> candidates =
      Joiner(names, SingleBytes(names)).Run(effort.candidates);
  return Chooser(names, std::move(candidates), kMaxPieces).Run(effort.rounds);
}

}  // namespace ksweep
