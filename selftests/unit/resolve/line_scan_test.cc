#include "lib/resolve/line_scan.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/source/kallsyms.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Scans `text`, with what has to be readable behind it.
class Scanned {
 public:
  explicit Scanned(std::string text,
                   const std::vector<std::string_view>& names = {"x"})
      : names_(names), scan_(names_.filter()) {
    size_ = text.size();
    padded_ = std::move(text) + std::string(64, '\n');
    scan_.Scan(std::string_view(padded_).substr(0, size_));
  }
  const LineScan* operator->() const { return &scan_; }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < scan_.cnt(); ++i) {
      names.emplace_back(scan_.is_odd(i) ? "(odd)" : scan_.name(i));
    }
    return names;
  }
  std::vector<uint32_t> DottedLines() const {
    std::vector<uint32_t> lines;
    for (const LineScan::Dot& dot : scan_.dots()) lines.push_back(dot.line);
    return lines;
  }
  std::vector<uint32_t> ProbedLines() const {
    std::vector<uint32_t> lines;
    for (const NameSet::Probe& probe : scan_.probes()) {
      lines.push_back(probe.tag);
    }
    return lines;
  }

 private:
  NameSet names_;
  LineScan scan_;
  std::string padded_;
  size_t size_;
};

constexpr char kText[] =
    "ffffffff81000000 T first_function\n"
    "ffffffff81000010 t b\n"
    "ffffffff81000020 d data.isra.0\n"
    "no symbol\n"
    "\n"
    "c0123450 t short_address\n"
    "ffffffffc0000000 t f_of_module\t[m]\n"
    "ffffffffc0000010 t g.part.1\t[a.b]\n"
    "gggggggg81000000 t no_digits\n";

TEST(LineScan, PartsOfLines) {
  const Scanned scan(kText);
  EXPECT_THAT(scan.Names(), ElementsAre("first_function", "b", "data.isra.0",
                                        "(odd)", "(odd)", "(odd)",
                                        "f_of_module", "g.part.1", "(odd)"));
  EXPECT_THAT(scan->odd_lines(), ElementsAre(3, 4, 5, 8));
  EXPECT_EQ(scan->addr(1), 0xffffffff81000010u);
  EXPECT_EQ(scan->type(2), 'd');
  EXPECT_TRUE(scan->is_module(6));
  EXPECT_FALSE(scan->is_module(2));
  EXPECT_EQ(std::string_view(scan->tab(6), 4), "\t[m]");
  // Dots behind the tab are none of the name's.
  EXPECT_THAT(scan.DottedLines(), ElementsAre(2, 2, 7, 7));
  EXPECT_TRUE(scan->ordered());
}

TEST(LineScan, EveryNameOfTheSetIsProbed) {
  std::mt19937 random(3);
  std::string text;
  std::vector<std::string> names;
  for (int i = 0; i < 3000; ++i) {
    const size_t len = 1 + random() % (i % 50 == 0 ? 300 : 40);
    std::string name;
    for (size_t k = 0; k < len; ++k) {
      name += "abcdefgh_.0123(/"[random() % 16];
    }
    names.push_back(name);
    text += "ffffffff8100000" + std::string(1, "0123456789abcdef"[i % 16]) +
            " t " + name + (i % 7 == 0 ? "\t[m]\n" : "\n");
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const Scanned scan(text, views);
  ASSERT_EQ(scan->cnt(), names.size());
  EXPECT_EQ(scan.Names(), names);
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < names.size(); ++i) all.push_back(i);
  EXPECT_EQ(scan.ProbedLines(), all);
  for (const NameSet::Probe& probe : scan->probes()) {
    EXPECT_EQ(std::string_view(probe.name, probe.len), names[probe.tag]);
  }
}

TEST(LineScan, TabsAndDotsAtEveryPlaceOfAName) {
  for (size_t len = 1; len < 150; ++len) {
    for (char mark : {'\t', '.'}) {
      for (size_t at = 1; at < len; ++at) {
        std::string name(len, 'n');
        name[at] = mark;
        const Scanned scan("ffffffff81000000 t " + name + "\n");
        ASSERT_EQ(scan->cnt(), 1u);
        ASSERT_EQ(scan->is_module(0), mark == '\t') << len << " " << at;
        ASSERT_EQ(scan->dots().size(), mark == '.' ? 1u : 0u);
        ASSERT_EQ(scan->name(0), mark == '.' ? name : name.substr(0, at));
      }
    }
  }
}

struct OrderCase {
  std::vector<std::string> addrs;
  bool ordered;
};

TEST(LineScan, Order) {
  const OrderCase cases[] = {
      {{"ffffffff81000000", "ffffffff81000000", "ffffffff81000010"}, true},
      {{"ffffffff81000010", "ffffffff81000000"}, false},
      {{"ffffffff81000000", "fffffffe81000000"}, false},
      {{"fffffffe81000000", "ffffffff01000000"}, true},
      // Per-CPU symbols are small numbers, wherever they stand.
      {{"0000000000000000", "0000000000021000", "ffffffff81000000"}, true},
  };
  for (const OrderCase& c : cases) {
    std::string text;
    for (const std::string& addr : c.addrs) text += addr + " t function_f\n";
    EXPECT_EQ(Scanned(text)->ordered(), c.ordered) << text;
  }
}

TEST(LineScan, NoText) {
  const Scanned scan("");
  EXPECT_EQ(scan->cnt(), 0u);
  EXPECT_THAT(scan.ProbedLines(), IsEmpty());
}

}  // namespace
}  // namespace ksweep
