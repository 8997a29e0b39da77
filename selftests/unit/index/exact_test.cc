// Indexes of real kernels: nothing is lost, nothing is made up.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ksweep/symbol_index.h"
#include "selftests/testing/fake_kernel.h"
#include "selftests/unit/index/index_model.h"

namespace ksweep {
namespace {

using testing::AnswersAt;
using testing::AnswersOf;
using testing::IndexModel;
using testing::LineOf;

// Bytes of the kernel's own table for these symbols: names, markers of every
// 256th, tokens, offsets and the order of names.
struct Kernel {
  const char* name;
  uint64_t core_lines;
  uint64_t kernel_table_bytes;
  double at_most;  // of them
};

constexpr Kernel kKernels[] = {
    {"linux-7.3.4", 197553, 4602970, 0.43},
    {"linux-6.12.95", 154334, 3212587, 0.43},
    {"linux-6.1.0", 87182, 1741717, 0.65},
};

void PrintTo(const Kernel& kernel, std::ostream* os) { *os << kernel.name; }

// The text, the index and the model of each kernel, made once.
struct Loaded {
  explicit Loaded(const Kernel& kernel)
      : text(testing::Gunzip(testing::DataFolder() + "/" + kernel.name +
                             "/proc/kallsyms.gz")),
        index(SymbolIndex::FromText(text)),
        model(text) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n') + 1);
      (line.find('\t') == line.npos ? core : modules) += line;
      rest.remove_prefix(line.size());
    }
  }

  std::string text, core, modules;
  absl::StatusOr<SymbolIndex> index;
  IndexModel model;
};

const Loaded& Load(const Kernel& kernel) {
  static std::map<std::string, std::unique_ptr<Loaded>> loaded;
  std::unique_ptr<Loaded>& slot = loaded[kernel.name];
  if (slot == nullptr) slot = std::make_unique<Loaded>(kernel);
  return *slot;
}

class ExactTest : public ::testing::TestWithParam<Kernel> {
 protected:
  ExactTest() : loaded_(Load(GetParam())) {
    EXPECT_TRUE(loaded_.index.ok()) << loaded_.index.status();
  }
  const SymbolIndex& index() const { return *loaded_.index; }
  const IndexModel& model() const { return loaded_.model; }

  const Loaded& loaded_;
};

std::vector<std::string> SortedLines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    lines.emplace_back(text.substr(0, text.find('\n') + 1));
    text.remove_prefix(lines.back().size());
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST_P(ExactTest, TheTextComesOutAgain) {
  std::string core, modules;
  uint64_t last = 0;
  bool ascending = true;
  ASSERT_TRUE(index()
                  .ForEach([&](const IndexSymbolView& symbol) {
                    (symbol.module.empty() ? core : modules) += LineOf(symbol);
                    ascending &= symbol.addr >= last;
                    last = symbol.addr;
                    return true;
                  })
                  .ok());
  EXPECT_TRUE(ascending);
  EXPECT_TRUE(core == loaded_.core) << "the core's lines differ";
  // Those of modules are in another order there.
  EXPECT_TRUE(SortedLines(modules) == SortedLines(loaded_.modules));
}

TEST_P(ExactTest, EveryNameHasAllItsSymbols) {
  for (const auto& [name, symbols] : model().names()) {
    const auto found = index().Find(name);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(AnswersOf(*found), AnswersOf(symbols)) << name;
  }
}

TEST_P(ExactTest, TheLowestAddressOfEveryName) {
  std::vector<std::string_view> names;
  for (const auto& [name, symbols] : model().names()) names.push_back(name);
  std::vector<AddressLookup> batch(names.size());
  index().FindAddresses(names, absl::MakeSpan(batch));
  size_t i = 0;
  for (const auto& [name, symbols] : model().names()) {
    const uint64_t lowest = std::get<0>(AnswersOf(symbols)[0]);
    const AddressLookup single = index().FindAddress(name);
    ASSERT_TRUE(single.found() && batch[i].found()) << name;
    ASSERT_EQ(single.addr, lowest) << name;
    ASSERT_EQ(batch[i].addr, lowest) << name;
    ++i;
  }
}

TEST_P(ExactTest, AbsentNamesAreAbsent) {
  std::vector<std::string> absent = {"", "_", "__pfx_", "__pfx_nothing"};
  for (const auto& [name, symbols] : model().names()) {
    for (std::string other :
         {name + "x", "x" + name, name.substr(1), "__pfx_" + name,
          name.substr(0, name.size() - 1)}) {
      if (!model().names().contains(other)) absent.push_back(std::move(other));
    }
  }
  const std::vector<std::string_view> names(absent.begin(), absent.end());
  std::vector<AddressLookup> batch(names.size());
  index().FindAddresses(names, absl::MakeSpan(batch));
  for (size_t i = 0; i < names.size(); ++i) {
    ASSERT_EQ(batch[i].state, LookupState::kAbsent) << names[i];
    ASSERT_EQ(index().FindAddress(names[i]).state, LookupState::kAbsent)
        << names[i];
  }
}

// All aliases, on both sides of every address where the answer changes.
TEST_P(ExactTest, AddressesAroundEveryEdge) {
  SymbolizedName first;
  for (uint64_t edge : model().Edges()) {
    for (uint64_t addr : {edge - 1, edge, edge + 1}) {
      const auto want = model().At(addr);
      ASSERT_EQ(AnswersAt(index(), addr), want) << std::hex << addr;
      const LookupState state = index().SymbolizeFirst(addr, &first);
      ASSERT_EQ(state == LookupState::kFound, !want.empty()) << addr;
      if (want.empty()) continue;
      ASSERT_TRUE(want.contains(testing::AnswerOf(first, first.offset)));
    }
  }
}

// The memory of modules alternates; at a start is what starts there and nothing
// else, however far the module's other memory is.
TEST_P(ExactTest, AtAModulesSymbolIsThatAlone) {
  using Names = std::multiset<std::string>;
  std::map<uint64_t, Names> starts;
  for (const auto& [name, symbols] : model().names()) {
    for (const IndexSymbol& s : symbols) {
      if (!s.module.empty()) starts[s.addr].insert(name + " " + s.module);
    }
  }
  const auto names_at = [this](uint64_t addr, uint64_t start) {
    Names names;
    const absl::StatusOr<Symbolized> found = index().Symbolize(addr);
    EXPECT_TRUE(found.ok()) << found.status();
    if (!found.ok()) return names;
    for (const SymbolizedName& s : found->symbols) {
      names.insert(s.name + " " + s.module);
      EXPECT_EQ(s.addr, start);
      EXPECT_EQ(s.offset, addr - start);
    }
    return names;
  };
  for (auto at = starts.begin(); at != starts.end(); ++at) {
    const auto& [addr, names] = *at;
    ASSERT_EQ(names_at(addr, addr), names) << std::hex << addr;
    const auto next = std::next(at);
    if (next == starts.end() || next->first > addr + 1) {
      ASSERT_EQ(names_at(addr + 1, addr), names) << std::hex << addr;
    }
    if (next != starts.end() && next->first - addr <= IndexModel::kMaxGap) {
      ASSERT_EQ(names_at(next->first - 1, addr), names) << std::hex << addr;
    }
  }
}

TEST_P(ExactTest, VerifiesItself) {
  EXPECT_EQ(index().Verify(), absl::OkStatus());
}

TEST_P(ExactTest, SmallerThanTheKernelsTable) {
  const auto core = SymbolIndex::FromText(loaded_.core);
  ASSERT_TRUE(core.ok()) << core.status();
  EXPECT_EQ(core->size(), GetParam().core_lines);
  const IndexStats stats = core->Stats();
  EXPECT_LT(
      static_cast<double>(stats.file_bytes),
      GetParam().at_most * static_cast<double>(GetParam().kernel_table_bytes));
  // All bytes are accounted for, but for those between sections.
  EXPECT_LT(stats.file_bytes - stats.core.bytes - stats.modules.bytes -
                stats.dictionary_bytes - stats.header_bytes,
            200u);
}

TEST_P(ExactTest, PrefixesAndGlobs) {
  std::set<std::string> want, by_prefix, by_glob;
  for (const auto& [name, symbols] : model().names()) {
    if (name.substr(0, 4) == "vfs_") want.insert(name);
  }
  const auto add_to = [](std::set<std::string>* names) {
    return [names](const IndexSymbolView& symbol) {
      names->insert(std::string(symbol.name));
      return true;
    };
  };
  ASSERT_TRUE(index().FindPrefix("vfs_", add_to(&by_prefix)).ok());
  ASSERT_TRUE(index().FindGlob("vfs_*", add_to(&by_glob)).ok());
  EXPECT_FALSE(want.empty());
  EXPECT_EQ(by_prefix, want);
  EXPECT_EQ(by_glob, want);
}

INSTANTIATE_TEST_SUITE_P(Kernels, ExactTest, ::testing::ValuesIn(kKernels),
                         [](const ::testing::TestParamInfo<Kernel>& info) {
                           std::string name = info.param.name;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '-' || c == '.'; },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace ksweep
