#include "lib/source/kallsyms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

struct HexCase {
  std::string_view digits;
  bool ok;
  uint64_t want;
};

constexpr HexCase kHexCases[] = {
    {"0", true, 0},
    {"7", true, 7},
    {"a", true, 10},
    {"F", true, 15},
    {"c0123450", true, 0xc0123450},
    {"ffffffff81000000", true, 0xffffffff81000000},
    {"FFFFffff81aBcDeF", true, 0xffffffff81abcdef},
    {"ffffffffffffffff", true, UINT64_MAX},
    {"0000000000000000", true, 0},
    // Refused.
    {"", false, 0},
    {"00000000000000000", false, 0},
    {"1ffffffffffffffff", false, 0},
    {"0x1", false, 0},
    {"-1", false, 0},
    {"+1", false, 0},
    {" 1", false, 0},
    {"1 ", false, 0},
    {"g", false, 0},
    {"1g", false, 0},
    {"g1", false, 0},
    {"\xff", false, 0},
};

TEST(ParseHex, Cases) {
  for (const HexCase& c : kHexCases) {
    uint64_t value = 0;
    EXPECT_EQ(ParseHex(c.digits, &value), c.ok) << c.digits;
    EXPECT_TRUE(!c.ok || value == c.want) << c.digits;
  }
}

bool IsHexDigit(int byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') ||
         (byte >= 'A' && byte <= 'F');
}

TEST(ParseHex, EveryByte) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    uint64_t value;
    EXPECT_EQ(ParseHex({&c, 1}, &value), IsHexDigit(byte)) << byte;
  }
}

TEST(IsHex16, EveryByteInEveryPlace) {
  for (size_t at = 0; at < 16; ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text = "09afAF0123456789";
      text[at] = static_cast<char>(byte);
      EXPECT_EQ(IsHex16(text.data()), IsHexDigit(byte)) << byte << " at " << at;
    }
  }
}

TEST(IsZero16, EveryByteInEveryPlace) {
  for (size_t at = 0; at < 16; ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text(16, '0');
      text[at] = static_cast<char>(byte);
      EXPECT_EQ(IsZero16(text.data()), byte == '0') << byte << " at " << at;
    }
  }
}

TEST(IsFunctionType, BugCase18_WeakFunctionsAreFunctions) {
  const std::string_view kFunctions = "TtWw";
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    EXPECT_EQ(IsFunctionType(c), kFunctions.find(c) != std::string_view::npos)
        << byte;
  }
}

struct LineCase {
  std::string_view line;
  uint64_t addr;
  char type;
  std::string_view name, module;
};

constexpr LineCase kLineCases[] = {
    {"ffffffff81000000 T _stext", 0xffffffff81000000, 'T', "_stext", ""},
    {"0000000000000000 A fixed_percpu_data", 0, 'A', "fixed_percpu_data", ""},
    {"ffffffff81000000 t x", 0xffffffff81000000, 't', "x", ""},
    {"FFFFFFFF81000000 W x", 0xffffffff81000000, 'W', "x", ""},
    {"1 ? x", 1, '?', "x", ""},
    {"ffffffffa0214e30 t nfs4_open\t[nfs]", 0xffffffffa0214e30, 't',
     "nfs4_open", "nfs"},
    {"ffffffffa0000000 t bpf_prog_6deef7357e7b4530\t[bpf]", 0xffffffffa0000000,
     't', "bpf_prog_6deef7357e7b4530", "bpf"},
    {"ffffffffa0000000 t __this_is\t[__builtin__kprobes]", 0xffffffffa0000000,
     't', "__this_is", "__builtin__kprobes"},
    // What follows the tag is none of ours.
    {"1 t x\t[m] more", 1, 't', "x", "m"},
    {"1 t x\t[m]\t[n]", 1, 't', "x", "m"},
    // A name is everything up to the tab or the end.
    {"1 t two words", 1, 't', "two words", ""},
    {"1 t two words\t[m]", 1, 't', "two words", "m"},
    {"1 t  x", 1, 't', " x", ""},
    {"1 t x ", 1, 't', "x ", ""},
    {"1 t x [m]", 1, 't', "x [m]", ""},
    {"1 t [m]", 1, 't', "[m]", ""},
    {"1 t $x.17\t[m]", 1, 't', "$x.17", "m"},
    {"1 t f.isra.0.cold", 1, 't', "f.isra.0.cold", ""},
    // Former bugs.
    {"c0123450 t vfs_q", 0xc0123450, 't', "vfs_q", ""},  // 11
    {"c0123450 t vfs_q\t[m]", 0xc0123450, 't', "vfs_q", "m"},
    {"ffffffffffffffff T last", UINT64_MAX, 'T', "last", ""},
    {"ffffffffa0000000 t drv_\xc3\xa9_on\t[x\xff]", 0xffffffffa0000000, 't',
     "drv_\xc3\xa9_on", "x\xff"},  // 9
};

TEST(ParseKsymLine, Cases) {
  for (const LineCase& c : kLineCases) {
    Symbol symbol;
    symbol.module = "left over";
    ASSERT_TRUE(ParseKsymLine(c.line, &symbol)) << c.line;
    EXPECT_EQ(symbol.addr, c.addr) << c.line;
    EXPECT_EQ(symbol.type, c.type) << c.line;
    EXPECT_EQ(symbol.name, c.name) << c.line;
    EXPECT_EQ(symbol.module, c.module) << c.line;
  }
}

constexpr std::string_view kRefusedLines[] = {
    "",
    " ",
    "\t",
    "ffffffff81000000",
    "ffffffff81000000 ",
    "ffffffff81000000 T",
    "ffffffff81000000 T ",
    "ffffffff81000000 TT x",
    "ffffffff81000000  x",
    "ffffffff81000000\tT\tx",
    "ffffffff81000000 T\tx",
    "ffffffff81000000T x",
    " ffffffff81000000 T x",
    " T x",
    "0xffffffff81000000 T x",
    "0x1 T x",
    "fffffffff81000000 T x",  // 17 digits
    "00000000000000001 T x",
    "fffffffg81000000 T x",
    "(null) T x",
    "1 t x\t",
    "1 t x\t[",
    "1 t x\t[m",
    "1 t x\tm]",
    "1 t x\t [m]",
    "1 t x\t[]",
    "1 t \t[m]",
    "# comment",
    "The System.map of this kernel is in another package",
};

TEST(ParseKsymLine, Refused) {
  for (std::string_view line : kRefusedLines) {
    Symbol symbol;
    EXPECT_FALSE(ParseKsymLine(line, &symbol)) << line;
  }
}

TEST(ParseKsymLine, EveryPrefixOfALine) {
  const std::string line = "ffffffffa0214e30 t nfs4_open\t[nfs]";
  for (size_t len = 0; len < line.size(); ++len) {
    // Of exactly this size, so that a read outside is seen.
    const std::vector<char> part(line.begin(),
                                 line.begin() + static_cast<ptrdiff_t>(len));
    Symbol symbol;
    // Up to the first letter of the name, and from the tab on, it is none.
    const bool want = len >= 20 && len <= 28;
    EXPECT_EQ(ParseKsymLine({part.data(), len}, &symbol), want) << len;
  }
}

TEST(ParseKsymLine, ReadsBackWhatIsWritten) {
  std::mt19937_64 rng(7);
  const auto word = [&rng](size_t max) {
    std::string text(1 + rng() % max, '\0');
    for (char& c : text) {
      do {
        c = static_cast<char>(rng());
      } while (c == '\t' || c == '\n' || c == ']');
    }
    return text;
  };
  for (int i = 0; i < 20000; ++i) {
    const uint64_t addr = rng() >> (rng() % 64);
    const char type = "TtWwDdAbV?"[rng() % 10];
    const std::string name = word(40);
    const std::string module = rng() % 2 == 0 ? word(10) : "";
    std::string line = rng() % 2 == 0 ? absl::StrFormat("%016x %c ", addr, type)
                                      : absl::StrFormat("%x %c ", addr, type);
    line += name;
    if (!module.empty()) line += "\t[" + module + "]";
    Symbol symbol;
    ASSERT_TRUE(ParseKsymLine(line, &symbol)) << line;
    EXPECT_EQ(symbol.addr, addr) << line;
    EXPECT_EQ(symbol.type, type) << line;
    EXPECT_EQ(symbol.name, name) << line;
    EXPECT_EQ(symbol.module, module) << line;
  }
}

TEST(ParseKsymLine, EveryLineOfRealKernels) {
  for (const char* kernel : {"linux-6.1.0", "linux-6.12.95", "linux-7.3.4"}) {
    const std::string text = testing::Gunzip(testing::DataFolder() + "/" +
                                             kernel + "/proc/kallsyms.gz");
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      const std::string_view line(text.data() + at, end - at);
      at = end + 1;
      Symbol symbol;
      ASSERT_TRUE(ParseKsymLine(line, &symbol)) << line;
      ASSERT_TRUE(IsHex16(line.data()));
      ASSERT_EQ(IsZero16(line.data()), symbol.addr == 0);
      std::string again = std::string(line.substr(0, kKsymNameColumn));
      again += symbol.name;
      if (!symbol.module.empty()) {
        again += "\t[" + std::string(symbol.module) + "]";
      }
      ASSERT_EQ(line, again);
      ASSERT_EQ(line[kKsymTypeColumn], symbol.type);
    }
  }
}

TEST(ParseKsymLine, BugCase02_FourthColumnIsTheModule) {
  Symbol symbol;
  ASSERT_TRUE(
      ParseKsymLine("ffffffffa0214e30 t nfs4_opendir_x\t[nfs]", &symbol));
  EXPECT_EQ(symbol.name, "nfs4_opendir_x");
  EXPECT_EQ(symbol.module, "nfs");
  // A module lies outside of _stext … _etext; that is no reason to drop it.
  EXPECT_EQ(symbol.addr, 0xffffffffa0214e30);
}

TEST(ParseKsymLine, BugCase03_TabPartsNameAndModule) {
  Symbol a, b;
  ASSERT_TRUE(ParseKsymLine("ffffffffc0561c40 b drc_count\t[nfsd]", &a));
  ASSERT_TRUE(ParseKsymLine("ffffffffc0c00040 b drc_count\t[nfsd_test]", &b));
  EXPECT_EQ(a.name, "drc_count");
  EXPECT_EQ(b.name, "drc_count");
  EXPECT_EQ(a.module, "nfsd");
  EXPECT_EQ(b.module, "nfsd_test");
  EXPECT_NE(a.addr, 0u);
}

TEST(ParseKsymLine, BugCase09_NamesAreBytes) {
  for (int byte = 1; byte < 256; ++byte) {
    if (byte == '\t') continue;
    const std::string name = {'d', static_cast<char>(byte), 'x'};
    const std::string line = "ffffffffa0000000 t " + name + "\t[m]";
    Symbol symbol;
    ASSERT_TRUE(ParseKsymLine(line, &symbol)) << byte;
    EXPECT_EQ(std::string(symbol.name), name) << byte;
  }
}

TEST(ParseKsymLine, BugCase10_LongNames) {
  for (size_t len : {127, 128, 255, 256, 511, 512, 5000}) {
    const std::string a = std::string(len - 1, 'n') + 'a';
    const std::string b = std::string(len - 1, 'n') + 'b';
    for (const std::string& name : {a, b}) {
      const std::string line = "ffffffffa0000000 t " + name + "\t[drvx]";
      Symbol symbol;
      ASSERT_TRUE(ParseKsymLine(line, &symbol)) << len;
      EXPECT_EQ(symbol.name, name) << len;
      EXPECT_EQ(symbol.module, "drvx") << len;
    }
  }
}

TEST(ParseKsymLine, BugCase11_AddressesHave64Bits) {
  static_assert(sizeof(Symbol::addr) == 8);
  std::string digits;
  uint64_t want = 0;
  for (int i = 1; i <= 16; ++i) {  // the number of digits is not assumed
    digits += "f";
    want = want << 4 | 0xf;
    const std::string line = digits + " t vfs_q";
    Symbol symbol;
    ASSERT_TRUE(ParseKsymLine(line, &symbol)) << line;
    EXPECT_EQ(symbol.addr, want);
    EXPECT_EQ(symbol.name, "vfs_q");
  }
}

}  // namespace
}  // namespace ksweep
