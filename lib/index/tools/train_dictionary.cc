// Makes the dictionary that is compiled in from kallsyms texts.
//
//   train_dictionary OUT KALLSYMS…
//
// The output is a C++ string literal for lib/index/dictionary_data.cc. Only
// names that an index spells out count: not pads that it folds, and of names
// that end in an earlier name only what is in front of that.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/index/dictionary.h"
#include "lib/index/dictionary_trainer.h"
#include "lib/index/fold.h"
#include "lib/index/suffix_finder.h"
#include "lib/source/kallsyms.h"

namespace ksweep {
namespace {

// A name that is not longer would not get shorter by a reference.
constexpr size_t kWorthReference = 16;

using Weights = std::map<std::string, uint64_t>;

std::vector<Row> CoreRows(std::string_view text) {
  std::vector<Row> rows;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    Symbol symbol;
    if (ParseKsymLine(text.substr(0, end), &symbol) && symbol.module.empty()) {
      rows.push_back({symbol.addr, symbol.name, 0, 0, symbol.type});
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.addr < b.addr; });
  return rows;
}

std::string_view SpelledOut(std::string_view name, uint32_t number,
                            SuffixFinder* earlier) {
  std::string_view spelled = name;
  earlier->Find(name, [&](size_t start, uint32_t) {
    if (name.size() - start < kWorthReference) return false;
    spelled = name.substr(0, start);
    return true;
  });
  if (spelled.size() == name.size()) earlier->Add(name, number);
  return spelled;
}

void AddNames(std::string_view text, Weights* weights) {
  const std::vector<Row> rows = CoreRows(text);
  const Folding folding = FoldPads(rows);
  SuffixFinder earlier(rows.size());
  for (uint32_t i = 0; i < rows.size(); ++i) {
    if (folding.states[i] == RowState::kFolded) continue;
    const std::string_view spelled = SpelledOut(rows[i].name, i, &earlier);
    if (!spelled.empty()) ++(*weights)[std::string(spelled)];
  }
}

std::string Literal(std::string_view bytes) {
  constexpr size_t kColumns = 76;
  std::string text, line;
  const auto flush = [&] {
    text += "\"" + line + "\"\n";
    line.clear();
  };
  for (unsigned char byte : bytes) {
    char piece[8];
    const bool plain = byte >= 0x20 && byte < 0x7f && byte != '"' &&
                       byte != '\\' && byte != '?';
    // Three octal digits end an escape, whatever follows.
    std::snprintf(piece, sizeof(piece), plain ? "%c" : "\\%03o", byte);
    if (line.size() + std::string_view(piece).size() > kColumns) flush();
    line += piece;
  }
  flush();
  return text;
}

int Main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s OUT KALLSYMS…\n", argv[0]);
    return 2;
  }
  Weights weights;
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file || text.empty()) {
      std::fprintf(stderr, "%s: cannot be read, or is empty\n", argv[i]);
      return 1;
    }
    AddNames(text, &weights);
  }
  std::vector<TrainingName> names;
  for (const auto& [name, weight] : weights) names.push_back({name, weight});
  const Dictionary dictionary(TrainDictionary(names));
  std::ofstream out(argv[1], std::ios::binary);
  out << Literal(dictionary.Pack());
  out.close();
  return out ? 0 : 1;
}

}  // namespace
}  // namespace ksweep

int main(int argc, char** argv) { return ksweep::Main(argc, argv); }
