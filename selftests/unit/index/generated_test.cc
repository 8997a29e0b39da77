// Made-up symbols of every kind that a kernel may have some day.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "ksweep/symbol_index.h"
#include "selftests/testing/fake_kernel.h"
#include "selftests/unit/index/index_model.h"

namespace ksweep {
namespace {

using testing::AnswersAt;
using testing::AnswersOf;
using testing::IndexModel;
using testing::LineOf;

std::string Line(uint64_t addr, char type, std::string_view name,
                 std::string_view module = "") {
  IndexSymbolView symbol;
  symbol.addr = addr;
  symbol.type = type;
  symbol.name = name;
  symbol.module = module;
  return LineOf(symbol);
}

void CheckAnswers(const SymbolIndex& index, const std::string& text,
                  const std::vector<uint64_t>& borders) {
  const IndexModel model(text, borders);
  for (const auto& [name, symbols] : model.names()) {
    const auto found = index.Find(name);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(AnswersOf(*found), AnswersOf(symbols))
        << name.substr(0, 99) << "\n"
        << text.substr(0, 3000);
    ASSERT_FALSE(index.FindAddress(name + "!").found());
  }
  for (uint64_t edge : model.Edges()) {
    for (uint64_t addr : {edge - 1, edge, edge + 1, edge + 4000}) {
      ASSERT_EQ(AnswersAt(index, addr), model.At(addr))
          << std::hex << addr << "\n"
          << text.substr(0, 3000);
    }
  }
  std::vector<IndexSymbol> all, walked;
  bool in_order = true;
  for (const auto& [name, symbols] : model.names()) {
    all.insert(all.end(), symbols.begin(), symbols.end());
  }
  const absl::Status status = index.ForEach([&](const IndexSymbolView& view) {
    in_order &= walked.empty() || walked.back().addr <= view.addr;
    walked.emplace_back();
    walked.back().addr = view.addr;
    walked.back().size = view.size;
    walked.back().type = view.type;
    walked.back().name = std::string(view.name);
    walked.back().module = std::string(view.module);
    return true;
  });
  ASSERT_EQ(status, absl::OkStatus());
  ASSERT_TRUE(in_order) << text.substr(0, 3000);
  ASSERT_EQ(AnswersOf(walked), AnswersOf(all)) << text.substr(0, 3000);
}

// That the index of `text` answers as the model does.
void CheckBuilt(const std::string& text) {
  const auto built = SymbolIndex::FromText(text);
  ASSERT_TRUE(built.ok()) << built.status() << "\n" << text.substr(0, 2000);
  ASSERT_EQ(built->Verify(), absl::OkStatus()) << text.substr(0, 2000);
  CheckAnswers(*built, text, {});
}

// The same once it was saved and opened.
void CheckAgainstModel(const std::string& text,
                       const BuildOptions& options = {}) {
  const auto built = SymbolIndex::FromText(text, options);
  ASSERT_TRUE(built.ok()) << built.status() << "\n" << text.substr(0, 2000);
  testing::FakeKernel folder;
  const std::string path = folder.root() + "/index";
  ASSERT_EQ(built->Save(path), absl::OkStatus());
  OpenOptions as_built;
  as_built.relocation = Relocation::kAsBuilt;
  as_built.verify = true;
  const auto opened = SymbolIndex::Open(path, as_built);
  ASSERT_TRUE(opened.ok()) << opened.status();
  CheckAnswers(*opened, text, options.borders);
}

class Generator {
 public:
  explicit Generator(uint32_t seed) : rng_(seed) {}

  std::string Text() {
    std::vector<std::string> lines;
    const size_t cnt = 1 + rng_() % 60;
    uint64_t addr = Base();
    for (size_t i = 0; i < cnt; ++i) {
      addr += Step();
      // `_end` has a meaning, and names of one line have to differ from
      // others'.
      const std::string name = Name();
      const char type = "tTdDwWrAbB?"[rng_() % 11];
      const bool is_module = rng_() % 3 == 0;
      const std::string module =
          is_module ? std::string("m") + std::to_string(rng_() % 3) : "";
      if (rng_() % 4 == 0) {
        lines.push_back(Line(addr - 16, type, "__pfx_" + name, module));
      }
      lines.push_back(Line(addr, type, name, module));
      if (rng_() % 6 == 0) addr = Base();
    }
    std::shuffle(lines.begin(), lines.end(), rng_);
    std::string text;
    for (const std::string& line : lines) text += line;
    return text;
  }

 private:
  uint64_t Base() {
    constexpr uint64_t kBases[] = {
        0xffffffff81000000, 0xffffffffc0000000, 0x1000,
        0xffff800010000000, 0xffffffff81f00000, 0xfffffffffffff000};
    return kBases[rng_() % std::size(kBases)] + rng_() % 64 * 16;
  }
  uint64_t Step() {
    constexpr uint64_t kSteps[] = {0,  0,    1,       4,        16,
                                   16, 0x40, 0x123,   0x12345,  0xffff,
                                   3,  8,    0x10000, 0xf00000, 0x1000001};
    return kSteps[rng_() % std::size(kSteps)];
  }
  std::string Name() {
    std::string name;
    for (size_t cnt = 1 + rng_() % 4; cnt > 0; --cnt) {
      constexpr std::string_view kWords[] = {
          "vfs_",  "read", "__ksymtab_", "tcp",
          "_",     "x",    "\xc3\xa9",   "\x01",
          ".cold", " ",    "sk_buff",    "__SCT__tp_func_"};
      name += kWords[rng_() % std::size(kWords)];
    }
    if (rng_() % 30 == 0) name += std::string(rng_() % 3000, 'q');
    if (rng_() % 30 == 0) name += std::string(rng_() % 300, '\xfe');
    return name;
  }

  std::mt19937 rng_;
};

TEST(Generated, AnswersAsTheModelDoes) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    CheckBuilt(Generator(seed).Text());
    if (HasFatalFailure()) return;
  }
}

TEST(Generated, NamesOfEveryLength) {
  std::string text;
  uint64_t addr = 0xffffffff81000000;
  for (size_t size : {1, 2, 15, 16, 17, 62, 63, 64, 127, 128, 255, 256, 511,
                      512, 513, 5000, 65529, 65535}) {
    for (char c : {'a', '\xff'}) {
      text += Line(addr += 16, 't', std::string(size, c));
      if (size < 65000) {
        text += Line(addr += 16, 't', std::string(size, c), "m");
        text += Line(addr += 16, 't', std::string(size, c) + "z", "m");
      }
    }
  }
  CheckAgainstModel(text);
}

TEST(Generated, NamesThatAreTooLongAreRefused) {
  const std::string text =
      "1000 t a\n" + Line(0x2000, 't', std::string(65536, 'a'));
  const auto index = SymbolIndex::FromText(text);
  EXPECT_TRUE(absl::IsInvalidArgument(index.status())) << index.status();
  EXPECT_THAT(std::string(index.status().message()),
              ::testing::HasSubstr("line 2"));
}

TEST(Generated, MoreThan4GiBFromFirstToLast) {
  // Neither a segment for each nor one for all would do.
  std::string text;
  for (uint64_t i = 0; i < 700; ++i) {
    text += Line(0x100000000 + i * 15 * 1024 * 1024, 't',
                 "far_" + std::to_string(i));
  }
  CheckAgainstModel(text);
}

TEST(Generated, ManyAliasesOverSeveralPages) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += Line(0xffffffff81000100 + (i > 250), i % 2 ? 'T' : 't',
                 "an_alias_of_many_" + std::to_string(i));
  }
  text += Line(0xffffffff81000000, 'T', "first");
  CheckAgainstModel(text);
}

TEST(Generated, PadsThatDoNotFit) {
  std::string text;
  uint64_t addr = 0xffffffff81000000;
  const auto add = [&](uint64_t step, char type, std::string_view name) {
    text += Line(addr += step, type, name);
  };
  for (int i = 0; i < 40; ++i) {
    const std::string name = "f" + std::to_string(i);
    add(48, 't', "__pfx_" + name);
    add(16, 't', name);
  }
  // Another distance, another type, no function, twice the same name, a
  // function between the two, a pad of a pad.
  add(100, 't', "__pfx_far");
  add(32, 't', "far");
  add(100, 't', "__pfx_odd");
  add(16, 'T', "odd");
  add(100, 't', "__pfx_alone");
  add(100, 't', "__pfx_f1");
  add(16, 't', "f1");
  add(100, 't', "__pfx_f2");
  add(100, 't', "__pfx_in");
  add(4, 't', "small");
  add(12, 't', "in");
  add(100, 't', "__pfx___pfx_p");
  add(16, 't', "__pfx_p");
  add(16, 't', "p");
  add(100, 't', "__pfx_");
  CheckAgainstModel(text);
}

TEST(Generated, PadsOfAliasesAndOfThoseBehind) {
  constexpr uint64_t kFirst = 0xffffffff81000000;
  std::string text;
  const auto add = [&](uint64_t addr, std::string_view name) {
    text += Line(kFirst + addr - 16, 't', "__pfx_" + std::string(name));
    text += Line(kFirst + addr, 't', name);
  };
  // As many at one address as are read at once, and more.
  uint64_t addr = 16;
  for (int cnt : {1, 2, 3, 20, 23, 63, 64, 65, 200}) {
    for (int i = 0; i < cnt; ++i) {
      add(addr, "alias_" + std::to_string(cnt) + "_" + std::to_string(i));
    }
    addr += 64;
  }
  // Nearer than their pads are long.
  for (int i = 0; i < 200; ++i) add(addr += 4, "near_" + std::to_string(i));
  for (int i = 0; i < 70; ++i) add(addr += 16, "close_" + std::to_string(i));
  text += Line(kFirst + addr, 'T', "alias_of_the_last");
  text += Line(kFirst + addr + 8, 'D', "last");
  CheckAgainstModel(text);
}

TEST(Generated, BordersEndWhatIsBeforeThem) {
  BuildOptions options;
  options.borders = {0xffffffff81001000, 0xffffffff81003000, 0xffffffff81003100,
                     0xffffffff90000000};
  CheckAgainstModel(Line(0xffffffff81000000, 'T', "a") +
                        Line(0xffffffff81001000, 'T', "b") +
                        Line(0xffffffff81002000, 'T', "c") +
                        Line(0xffffffff81003000, 'T', "mark") +
                        Line(0xffffffff81003200, 'T', "d"),
                    options);
}

TEST(Generated, NoSymbols) {
  for (const auto& index : {SymbolIndex::FromText(""),
                            absl::StatusOr<SymbolIndex>(SymbolIndex())}) {
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ(index->size(), 0u);
    EXPECT_FALSE(index->FindAddress("a").found());
    EXPECT_EQ(AnswersAt(*index, 0x1000).size(), 0u);
    EXPECT_EQ(index->Verify(), absl::OkStatus());
    AddressLookup lookup;
    const std::string_view name = "a";
    index->FindAddresses({&name, 1}, {&lookup, 1});
    EXPECT_FALSE(lookup.found());
  }
}

TEST(Generated, ADictionaryOfItsOwn) {
  // Names of a kind that no kernel has.
  std::string text;
  for (int i = 0; i < 9000; ++i) {
    text += Line(0xffffffff81000000 + 16 * static_cast<uint64_t>(i), 't',
                 "QZXJ~VKQ~ZZ" + std::to_string(i * 7919) + "~JQXKVZ~QQ");
  }
  BuildOptions options;
  options.own_dictionary = true;
  const auto own = SymbolIndex::FromText(text, options);
  const auto built_in = SymbolIndex::FromText(text);
  ASSERT_TRUE(own.ok() && built_in.ok());
  EXPECT_TRUE(own->Stats().own_dictionary);
  EXPECT_LT(own->Stats().file_bytes * 3, built_in->Stats().file_bytes * 2);
  CheckAgainstModel(text, options);
}

}  // namespace
}  // namespace ksweep
