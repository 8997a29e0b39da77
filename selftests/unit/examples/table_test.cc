#include "common/table.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace examples {
namespace {

using namespace std::string_view_literals;

TEST(Table, AlignsColumnsAndLeavesNoSpaceAtTheEnd) {
  Table table("lrl");
  table.AddRow({"NAME", "CALLS", "NOTE"});
  table.AddRow({"vfs_read", "7", ""});
  table.AddRow({"x", "1,000,000", "often"});
  std::string out = "before\n";
  table.AppendTo(&out, "  ");
  EXPECT_EQ(out,
            "before\n"
            "  NAME          CALLS  NOTE\n"
            "  vfs_read          7\n"
            "  x         1,000,000  often\n");
}

TEST(Table, EmptyIsNothing) {
  std::string out;
  Table("ll").AppendTo(&out);
  EXPECT_EQ(out, "");
}

struct NumberCase {
  uint64_t number;
  std::string_view want;
};

TEST(WithCommas, Cases) {
  constexpr NumberCase kCases[] = {
      {0, "0"},
      {999, "999"},
      {1000, "1,000"},
      {123456, "123,456"},
      {1234567, "1,234,567"},
      {UINT64_MAX, "18,446,744,073,709,551,615"},
  };
  for (const NumberCase& c : kCases) EXPECT_EQ(WithCommas(c.number), c.want);
}

struct BarCase {
  uint64_t part;
  uint64_t most;
  std::string_view want;
};

TEST(Bar, Cases) {
  constexpr BarCase kCases[] = {
      {0, 0, "    "},      {0, 7, "    "},
      {7, 7, "@@@@"},      {1, 1000, "@   "},  // some is not nothing
      {1, 2, "@@  "},      {749, 1000, "@@  "},
      {750, 1000, "@@@ "}, {UINT64_MAX, UINT64_MAX, "@@@@"},
  };
  for (const BarCase& c : kCases) {
    EXPECT_EQ(Bar(c.part, c.most, 4), c.want) << c.part << " of " << c.most;
  }
}

TEST(Words, OneAndMany) {
  EXPECT_EQ(Count(0, "call"), "0 calls");
  EXPECT_EQ(Count(1, "call"), "1 call");
  EXPECT_EQ(Count(2000, "call"), "2,000 calls");
  EXPECT_EQ(Milliseconds(1'250'000), "1.2 ms");
  EXPECT_EQ(AddrText(0), "-");
  EXPECT_EQ(AddrText(0xffffffff81000100), "ffffffff81000100");
  EXPECT_EQ(ModuleText(""), "-");
  EXPECT_EQ(ModuleText("xfs"), "xfs");
}

TEST(Printable, NamesCannotControlTheTerminal) {
  EXPECT_EQ(Printable("vfs_read.isra.0"), "vfs_read.isra.0");
  EXPECT_EQ(Printable("a\x1b[2Jb\n\xff\0c"sv), R"(a\x1b[2Jb\x0a\xff\x00c)");
}

}  // namespace
}  // namespace examples
