#include "lib/index/tokenizer.h"

#include <algorithm>

namespace ksweep {
namespace {

std::vector<std::string_view> PiecesOf(const Dictionary& dictionary) {
  std::vector<std::string_view> pieces(kCodeCnt);
  for (uint16_t code = kFirstPiece; code < kCodeCnt; ++code) {
    pieces[code] = dictionary.Piece(code);
  }
  return pieces;
}

}  // namespace

Tokenizer::Tokenizer(const Dictionary& dictionary) {
  Build(PiecesOf(dictionary));
}

Tokenizer::Tokenizer(absl::Span<const std::string_view> pieces) {
  Build(pieces);
}

void Tokenizer::Build(absl::Span<const std::string_view> pieces) {
  std::vector<Entry> entries;
  for (size_t code = 0; code < pieces.size(); ++code) {
    if (pieces[code].empty()) continue;
    entries.push_back({pieces[code], static_cast<uint16_t>(code)});
    for (unsigned char byte : pieces[code]) classes_[byte] = 1;
  }
  for (uint8_t& c : classes_) {
    if (c != 0) c = static_cast<uint8_t>(class_cnt_++);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.piece != b.piece ? a.piece < b.piece : a.code < b.code;
  });
  nodes_.resize(1 + class_cnt_);
  nodes_[0].parent = 0;
  Place(0, entries, 0);
  // A step from any node stays inside.
  nodes_.resize(nodes_.size() + class_cnt_);
}

// A place where the children with these classes fit.
uint32_t Tokenizer::FindBase(absl::Span<const uint8_t> classes) {
  while (first_free_ < nodes_.size() &&
         nodes_[first_free_].parent != kNoParent) {
    ++first_free_;
  }
  uint32_t base = first_free_ > classes[0] ? first_free_ - classes[0] : 0;
  for (;; ++base) {
    if (base + class_cnt_ > nodes_.size()) nodes_.resize(base + class_cnt_);
    if (std::all_of(classes.begin(), classes.end(), [&](uint8_t c) {
          return nodes_[base + c].parent == kNoParent;
        })) {
      return base;
    }
  }
}

// Lays out what is below `node`: the entries that share its `depth` bytes.
void Tokenizer::Place(uint32_t node, absl::Span<const Entry> entries,
                      size_t depth) {
  if (!entries.empty() && entries[0].piece.size() == depth) {
    nodes_[node].code = entries[0].code;
    while (!entries.empty() && entries[0].piece.size() == depth) {
      entries.remove_prefix(1);
    }
  }
  if (entries.empty()) return;
  const auto class_of = [&](const Entry& entry) {
    return classes_[static_cast<unsigned char>(entry.piece[depth])];
  };
  std::vector<uint8_t> classes;
  for (const Entry& entry : entries) {
    if (classes.empty() || classes.back() != class_of(entry)) {
      classes.push_back(class_of(entry));
    }
  }
  const uint32_t base = FindBase(classes);
  nodes_[node].base = base;
  for (uint8_t c : classes) nodes_[base + c].parent = node;
  for (uint8_t c : classes) {
    const size_t cnt = static_cast<size_t>(
        std::find_if(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return class_of(entry) != c; }) -
        entries.begin());
    Place(base + c, entries.subspan(0, cnt), depth + 1);
    entries.remove_prefix(cnt);
  }
}

inline Tokenizer::Step Tokenizer::BestStep(std::string_view name, size_t at,
                                           size_t max_piece) const {
  // An escape.
  Step best = {steps_[at + 1].cost + 2, kNoCode, 1};
  const size_t end = std::min(name.size(), at + max_piece);
  uint32_t node = 0;
  for (size_t i = at; i < end; ++i) {
    const uint32_t child =
        nodes_[node].base + classes_[static_cast<unsigned char>(name[i])];
    if (nodes_[child].parent != node || child == 0) break;
    node = child;
    if (nodes_[node].code == kNoCode) continue;
    const uint32_t cost = steps_[i + 1].cost + 1;
    if (cost <= best.cost) {
      best = {cost, nodes_[node].code, static_cast<uint16_t>(i + 1 - at)};
    }
  }
  return best;
}

// Fills `steps_` from the right to the left.
void Tokenizer::Parse(std::string_view name, size_t max_piece) {
  if (steps_.size() <= name.size()) steps_.resize(name.size() + 1);
  steps_[name.size()] = {};
  for (size_t at = name.size(); at-- > 0;) {
    steps_[at] = BestStep(name, at, max_piece);
  }
}

void Tokenizer::Encode(std::string_view name, std::vector<uint16_t>* codes) {
  Parse(name, kMaxPieceBytes);
  for (size_t at = 0; at < name.size(); at += steps_[at].size) {
    if (steps_[at].code != kNoCode) {
      codes->push_back(steps_[at].code);
    } else {
      codes->push_back(kEscapeCode);
      codes->push_back(static_cast<unsigned char>(name[at]));
    }
  }
}

uint32_t Tokenizer::CostWithoutItself(std::string_view name) {
  Parse(name, name.size() - 1);
  return steps_[0].cost;
}

}  // namespace ksweep
