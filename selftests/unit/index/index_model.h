// What an index has to answer, found in the plainest way.

#ifndef KSWEEP_SELFTESTS_UNIT_INDEX_INDEX_MODEL_H_
#define KSWEEP_SELFTESTS_UNIT_INDEX_INDEX_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/strings/str_format.h"
#include "ksweep/symbol_index.h"
#include "lib/source/kallsyms.h"

namespace ksweep::testing {

// A symbol with the offset of the address it was asked for: (addr, size, type,
// name, module, offset).
using Answer =
    std::tuple<uint64_t, uint64_t, char, std::string, std::string, uint64_t>;

inline Answer AnswerOf(const IndexSymbol& s, uint64_t offset = 0) {
  return {s.addr, s.size, s.type, s.name, s.module, offset};
}

inline std::string LineOf(const IndexSymbolView& s) {
  std::string line =
      absl::StrFormat("%016x %c ", s.addr, s.type) + std::string(s.name);
  if (!s.module.empty()) line += "\t[" + std::string(s.module) + "]";
  return line + "\n";
}

// All symbols of a text by address, the core's apart from those of modules.
class IndexModel {
 public:
  static constexpr uint64_t kMaxGap = uint64_t{16} << 20;
  static constexpr uint64_t kTail = 4096;

  explicit IndexModel(std::string_view text,
                      std::vector<uint64_t> borders = {}) {
    std::vector<IndexSymbol> core, modules;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      Symbol line;
      if (!ParseKsymLine(text.substr(0, end), &line)) std::abort();
      IndexSymbol symbol;
      symbol.addr = line.addr;
      symbol.type = line.type;
      symbol.name = std::string(line.name);
      symbol.module = std::string(line.module);
      if (line.module.empty() && line.name == "_end") {
        end_mark_ = line.addr;
        borders.push_back(line.addr);
        borders.push_back(line.addr + 1);
      }
      (symbol.module.empty() ? core : modules).push_back(symbol);
      text.remove_prefix(end + 1);
    }
    borders_ = {borders.begin(), borders.end()};
    AddPart(true, std::move(core));
    AddPart(false, std::move(modules));
  }

  // Every name with its symbols in address order, the core's first.
  const std::map<std::string, std::vector<IndexSymbol>>& names() const {
    return names_;
  }

  // The answers for `addr`, in no order.
  std::set<Answer> At(uint64_t addr) const {
    std::set<Answer> answers;
    if (addr == 0) return answers;
    for (const Range& range : ranges_) {
      if (addr < range.first) continue;
      auto next = range.symbols.upper_bound(addr);
      const uint64_t start = std::prev(next)->first;
      if (next == range.symbols.end() && addr - start >= TailOf(range)) {
        continue;
      }
      for (const IndexSymbol& s : std::prev(next)->second) {
        answers.insert(AnswerOf(s, addr - s.addr));
      }
    }
    return answers;
  }

  // Addresses where answers change.
  std::set<uint64_t> Edges() const {
    std::set<uint64_t> edges;
    for (const Range& range : ranges_) {
      for (const auto& [addr, symbols] : range.symbols) edges.insert(addr);
      edges.insert(range.last + TailOf(range));
    }
    return edges;
  }

 private:
  // Symbols of one part with no gap or border between them.
  struct Range {
    uint64_t first = 0, last = 0;
    uint64_t known_end = 0;  // 0: not known
    bool core = false;
    std::map<uint64_t, std::vector<IndexSymbol>> symbols;
  };

  bool BorderBetween(uint64_t a, uint64_t b) const {
    const auto next = borders_.upper_bound(a);
    return next != borders_.end() && *next <= b;
  }

  void AddPart(bool is_core, std::vector<IndexSymbol> symbols) {
    std::stable_sort(symbols.begin(), symbols.end(),
                     [](const IndexSymbol& a, const IndexSymbol& b) {
                       return a.addr < b.addr;
                     });
    const size_t first_range = ranges_.size();
    for (const IndexSymbol& symbol : symbols) {
      if (ranges_.size() == first_range ||
          symbol.addr - ranges_.back().last > kMaxGap ||
          (is_core && BorderBetween(ranges_.back().last, symbol.addr))) {
        ranges_.emplace_back();
        ranges_.back().first = symbol.addr;
        ranges_.back().core = is_core;
      }
      ranges_.back().last = symbol.addr;
      ranges_.back().symbols[symbol.addr].push_back(symbol);
    }
    for (size_t i = first_range; i < ranges_.size(); ++i) SetSizes(&ranges_[i]);
    for (const IndexSymbol& symbol : symbols) {
      for (size_t i = first_range; i < ranges_.size(); ++i) {
        if (symbol.addr < ranges_[i].first || symbol.addr > ranges_[i].last) {
          continue;
        }
        IndexSymbol sized = symbol;
        sized.size = ranges_[i].symbols[symbol.addr][0].size;
        names_[symbol.name].push_back(sized);
        break;
      }
    }
  }

  void SetSizes(Range* range) {
    const auto border = borders_.upper_bound(range->last);
    const bool is_mark =
        range->first == range->last && end_mark_ == range->last;
    if (range->core && !is_mark && border != borders_.end() &&
        *border - range->last <= kMaxGap) {
      range->known_end = *border;
    }
    for (auto at = range->symbols.begin(); at != range->symbols.end(); ++at) {
      const auto next = std::next(at);
      uint64_t size = 0;
      if (next != range->symbols.end()) {
        size = next->first - at->first;
      } else if (range->known_end != 0) {
        size = range->known_end - at->first;
      }
      for (IndexSymbol& symbol : at->second) symbol.size = size;
    }
  }

  uint64_t TailOf(const Range& range) const {
    if (range.known_end != 0) return range.known_end - range.last;
    const bool is_mark =
        range.core && range.first == range.last && end_mark_ == range.last;
    return std::min(is_mark ? uint64_t{1} : kTail, UINT64_MAX - range.last);
  }

  std::set<uint64_t> borders_;
  std::optional<uint64_t> end_mark_;
  std::vector<Range> ranges_;
  std::map<std::string, std::vector<IndexSymbol>> names_;
};

inline std::set<Answer> AnswersAt(const SymbolIndex& index, uint64_t addr) {
  const absl::StatusOr<Symbolized> found = index.Symbolize(addr);
  std::set<Answer> answers;
  if (!found.ok()) return {{0, 0, '!', found.status().ToString(), "", 0}};
  for (const SymbolizedName& s : found->symbols) {
    answers.insert(AnswerOf(s, s.offset));
  }
  return answers;
}

inline std::vector<Answer> AnswersOf(const std::vector<IndexSymbol>& symbols) {
  std::vector<Answer> answers;
  for (const IndexSymbol& s : symbols) answers.push_back(AnswerOf(s));
  // Core first, then the modules, each in address order; of one address in any.
  std::sort(answers.begin(), answers.end(),
            [](const Answer& a, const Answer& b) {
              return std::make_tuple(!std::get<4>(a).empty(), a) <
                     std::make_tuple(!std::get<4>(b).empty(), b);
            });
  return answers;
}

}  // namespace ksweep::testing

#endif  // KSWEEP_SELFTESTS_UNIT_INDEX_INDEX_MODEL_H_
