#include "selftests/bench/index_subject.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "lib/source/kallsyms.h"
#include "selftests/testing/alloc_counter.h"

namespace ksweep::bench {
namespace {

constexpr uint64_t kSeed = 3;
constexpr size_t kHotCnt = 50;
constexpr size_t kPlaceCnt = 100000;
constexpr std::string_view kPad = "__pfx_";

bool IsPad(std::string_view name) { return name.starts_with(kPad); }

std::string TextOf(const std::vector<CoreSymbol>& symbols) {
  std::string text;
  for (const CoreSymbol& symbol : symbols) {
    absl::StrAppendFormat(&text, "%016x %c ", symbol.addr, symbol.type);
    text += symbol.name;
    text += '\n';
  }
  return text;
}

// The first symbol of each name.
using FirstAddrs = absl::flat_hash_map<std::string_view, uint64_t>;

FirstAddrs FirstAddrsOf(const std::vector<CoreSymbol>& symbols) {
  FirstAddrs addrs;
  for (const CoreSymbol& symbol : symbols) {
    addrs.try_emplace(symbol.name, symbol.addr);
  }
  return addrs;
}

void SetAddrs(const FirstAddrs& truth, NameQuestion* question) {
  for (std::string_view name : question->views) {
    const auto found = truth.find(name);
    question->addrs.push_back(found == truth.end() ? kNoAddr : found->second);
  }
}

std::vector<std::string> FunctionNames(const std::vector<CoreSymbol>& symbols,
                                       bool pads) {
  std::vector<std::string> names;
  for (const CoreSymbol& symbol : symbols) {
    if (IsFunctionType(symbol.type) && IsPad(symbol.name) == pads) {
      names.push_back(symbol.name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> AbsentNames(const std::vector<std::string>& present,
                                     const FirstAddrs& truth,
                                     std::mt19937_64* random) {
  std::vector<std::string> absent;
  while (absent.size() < present.size()) {
    std::string name =
        AbsentLike(present[(*random)() % present.size()], random);
    if (!truth.contains(name)) absent.push_back(std::move(name));
  }
  return absent;
}

void DrawNameQuestions(Subject* subject) {
  const FirstAddrs truth = FirstAddrsOf(subject->symbols);
  std::mt19937_64 random(kSeed);
  std::vector<std::string> functions =
      FunctionNames(subject->symbols, /*pads=*/false);
  std::shuffle(functions.begin(), functions.end(), random);
  std::vector<std::string> pads =
      FunctionNames(subject->symbols, /*pads=*/true);
  std::shuffle(pads.begin(), pads.end(), random);
  SetNames(AbsentNames(functions, truth, &random), &subject->absent);
  SetNames(
      absl::MakeConstSpan(functions).first(std::min(kHotCnt, functions.size())),
      &subject->hot);
  SetNames(functions, &subject->functions);
  SetNames(pads, &subject->pads);
  for (NameQuestion* question :
       {&subject->functions, &subject->hot, &subject->absent, &subject->pads}) {
    SetAddrs(truth, question);
  }
}

// Functions that end where another symbol begins.
void DrawPlaces(Subject* subject) {
  constexpr uint64_t kMostBytes = 4096;
  const std::vector<CoreSymbol>& symbols = subject->symbols;
  std::mt19937_64 random(kSeed);
  AddrQuestion& places = subject->places;
  while (places.addrs.size() < kPlaceCnt) {
    const size_t i = random() % (symbols.size() - 1);
    const uint64_t size = symbols[i + 1].addr - symbols[i].addr;
    if (!IsFunctionType(symbols[i].type) || size == 0 || size > kMostBytes) {
      continue;
    }
    places.offsets.push_back(random() % size);
    places.addrs.push_back(symbols[i].addr + places.offsets.back());
  }
}

void MakeKernelTables(Subject* subject) {
  subject->names = std::make_unique<CompressedNames>(subject->symbols);
  for (const auto& [label, form] : kKernelForms) {
    subject->kernel.push_back(
        {label, form,
         MakeKernelTable(form, subject->symbols, *subject->names)});
  }
  subject->linear = MakeLinearTable(subject->symbols, *subject->names);
  testing::ResetAllocStats();
  subject->tree = MakeTreeTable(subject->symbols);
  subject->tree_bytes = testing::GetAllocStats().live_bytes;
}

}  // namespace

void OkOrDie(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(2);
}

void SetNames(absl::Span<const std::string> names, NameQuestion* question) {
  for (const std::string& name : names) question->text.append(name) += '\0';
  std::string_view rest = question->text;
  for (const std::string& name : names) {
    question->views.push_back(rest.substr(0, name.size()));
    rest.remove_prefix(name.size() + 1);
  }
}

const KernelTableOf& Subject::Kernel(KernelForm form) const {
  return *std::find_if(
      kernel.begin(), kernel.end(), [&form](const KernelTableOf& table) {
        return table.form.names == form.names && table.form.seqs == form.seqs &&
               table.form.compare == form.compare;
      });
}

std::unique_ptr<Subject> MakeSubject(const Source& source) {
  auto subject = std::make_unique<Subject>();
  subject->source = &source;
  subject->symbols = ReadCoreSymbols(source.path);
  subject->core_text = TextOf(subject->symbols);
  MakeKernelTables(subject.get());
  testing::ResetAllocStats();
  subject->index = ValueOrDie(SymbolIndex::FromText(subject->core_text));
  subject->build_peak_bytes = testing::GetAllocStats().peak_bytes;
  DrawNameQuestions(subject.get());
  DrawPlaces(subject.get());
  return subject;
}

}  // namespace ksweep::bench
