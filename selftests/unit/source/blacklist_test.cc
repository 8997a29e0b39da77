#include "lib/source/blacklist.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "ksweep/status.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using testing::FakeKernel;

struct LineCase {
  std::string_view line;
  uint64_t begin, end;
};

constexpr LineCase kLineCases[] = {
    {"0xffffffff81e0a340-0xffffffff81e0a4c0\tdo_trp", 0xffffffff81e0a340,
     0xffffffff81e0a4c0},
    {"0xffffffff81e0a340-0xffffffff81e0a4c0 do_trp", 0xffffffff81e0a340,
     0xffffffff81e0a4c0},
    {"0xffffffff81e0a340-0xffffffff81e0a4c0", 0xffffffff81e0a340,
     0xffffffff81e0a4c0},
    {"0xffffffffc0000000-0xffffffffc0000010\tf [drvx]", 0xffffffffc0000000,
     0xffffffffc0000010},
    {"0xffffffff81e0a340-0xffffffff81e0a4c0\ta-b", 0xffffffff81e0a340,
     0xffffffff81e0a4c0},
    {"ffffffff81e0a340-ffffffff81e0a4c0\tx", 0xffffffff81e0a340,
     0xffffffff81e0a4c0},
    {"0x1-0x2\tx", 1, 2},
    {"0xc0100000-0xc0100040\tx", 0xc0100000, 0xc0100040},
    {"0x0000000000000000-0x0000000000000000\tx", 0, 0},
    {"0x0-0xffffffffffffffff\tx", 0, UINT64_MAX},
};

TEST(ParseBlacklistLine, Cases) {
  for (const LineCase& c : kLineCases) {
    AddrRange range;
    ASSERT_TRUE(ParseBlacklistLine(c.line, &range)) << c.line;
    EXPECT_EQ(range.begin, c.begin) << c.line;
    EXPECT_EQ(range.end, c.end) << c.line;
  }
}

constexpr std::string_view kRefusedLines[] = {
    "",
    "-",
    "\tdo_trp",
    "do_trp",
    "0x10\tdo_trp",
    "0x10-\tdo_trp",
    "-0x20\tdo_trp",
    "0x-0x20\tdo_trp",
    "0x10-0x\tdo_trp",
    "0x10-0x20-0x30\tdo_trp",
    "0x10--0x20\tdo_trp",
    "0x10 -0x20\tdo_trp",
    " 0x10-0x20\tdo_trp",
    "0x0x10-0x20\tdo_trp",
    "0xg-0x20\tdo_trp",
    "0x10-0xg\tdo_trp",
    "0x10-0x11111111111111111\tdo_trp",
    "(null)-(null)\tdo_trp",
    "0x10-0x20x\tdo_trp",
};

TEST(ParseBlacklistLine, Refused) {
  for (std::string_view line : kRefusedLines) {
    AddrRange range;
    EXPECT_FALSE(ParseBlacklistLine(line, &range)) << line;
  }
}

struct ContainsCase {
  std::vector<AddrRange> ranges;
  std::vector<uint64_t> in, out;
};

TEST(Blacklist, Contains) {
  const ContainsCase kCases[] = {
      {{}, {}, {0, 1, UINT64_MAX}},
      {{{10, 20}}, {10, 11, 19}, {0, 9, 20, 21}},
      {{{10, 20}, {30, 40}}, {10, 19, 30, 39}, {9, 20, 25, 29, 40}},
      // In any order, overlapping, touching, one in another, twice.
      {{{30, 40}, {10, 20}}, {10, 19, 30, 39}, {9, 20, 25, 29, 40}},
      {{{10, 20}, {15, 30}}, {10, 20, 29}, {9, 30}},
      {{{10, 20}, {20, 30}}, {10, 19, 20, 29}, {9, 30}},
      {{{10, 40}, {15, 20}}, {10, 20, 39}, {9, 40}},
      {{{10, 40}, {12, 14}, {50, 60}}, {39, 50}, {40, 49, 60}},
      {{{10, 20}, {10, 30}, {10, 20}}, {10, 29}, {9, 30}},
      // Nothing is in these.
      {{{0, 0}, {0, 0}}, {}, {0, 1}},
      {{{10, 10}}, {}, {9, 10, 11}},
      {{{20, 10}}, {}, {9, 10, 15, 20}},
      {{{20, 10}, {12, 14}}, {12, 13}, {10, 11, 14, 15, 20}},
      // The ends of the address space.
      {{{0, 1}}, {0}, {1}},
      {{{0, UINT64_MAX}}, {0, UINT64_MAX - 1}, {UINT64_MAX}},
      {{{UINT64_MAX - 1, UINT64_MAX}}, {UINT64_MAX - 1}, {0, UINT64_MAX}},
  };
  for (size_t i = 0; i < std::size(kCases); ++i) {
    const Blacklist blacklist(kCases[i].ranges);
    EXPECT_EQ(blacklist.empty(), kCases[i].in.empty()) << "case " << i;
    for (uint64_t addr : kCases[i].in) {
      EXPECT_TRUE(blacklist.Contains(addr)) << "case " << i << ": " << addr;
    }
    for (uint64_t addr : kCases[i].out) {
      EXPECT_FALSE(blacklist.Contains(addr)) << "case " << i << ": " << addr;
    }
  }
}

TEST(Blacklist, AsLoopingOverTheRanges) {
  std::mt19937 rng(8);
  for (int round = 0; round < 500; ++round) {
    std::vector<AddrRange> ranges(rng() % 20);
    for (AddrRange& range : ranges) {
      range.begin = rng() % 200;
      range.end = range.begin + rng() % 12;
    }
    const Blacklist blacklist(ranges);
    for (uint64_t addr = 0; addr < 220; ++addr) {
      const bool want = std::any_of(
          ranges.begin(), ranges.end(), [addr](const AddrRange& range) {
            return range.begin <= addr && addr < range.end;
          });
      ASSERT_EQ(blacklist.Contains(addr), want) << addr;
    }
  }
}

absl::StatusOr<Blacklist> ReadBlacklist(const KernelFiles& files) {
  absl::StatusOr<ListFile> file = ListFile::Open(files, KernelFile::kBlacklist);
  if (!file.ok()) return file.status();
  return Blacklist::Read(&*file);
}

absl::StatusOr<Blacklist> BlacklistOf(std::string_view text) {
  FakeKernel kernel;
  kernel.Write(KernelFile::kBlacklist, text);
  return ReadBlacklist(kernel.files());
}

TEST(Blacklist, EmptyFile) {
  const absl::StatusOr<Blacklist> blacklist = BlacklistOf("");
  ASSERT_TRUE(blacklist.ok()) << blacklist.status();
  EXPECT_TRUE(blacklist->empty());
}

TEST(Blacklist, SkipsLinesOfAnotherForm) {
  const absl::StatusOr<Blacklist> blacklist =
      BlacklistOf("# kprobe blacklist\n\n0x10-0x20\ta\nnonsense\n0x30-0x40\tb");
  ASSERT_TRUE(blacklist.ok()) << blacklist.status();
  EXPECT_TRUE(blacklist->Contains(0x10));
  EXPECT_TRUE(blacklist->Contains(0x3f));
  EXPECT_FALSE(blacklist->Contains(0x20));
}

TEST(Blacklist, NoFile) {
  const FakeKernel kernel;
  const absl::Status status = ReadBlacklist(kernel.files()).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(ErrnoOf(status), ENOENT);
}

TEST(Blacklist, CannotBeRead) {
  const FakeKernel kernel;
  std::filesystem::create_directories(kernel.Path(KernelFile::kBlacklist));
  const absl::Status status = ReadBlacklist(kernel.files()).status();
  EXPECT_EQ(ErrnoOf(status), EISDIR) << status;
}

TEST(Blacklist, OfRealKernels) {
  for (const char* name : {"linux-6.12.95", "linux-7.3.4"}) {
    const std::string text =
        testing::Gunzip(testing::DataFolder() + "/" + name +
                        "/sys/kernel/debug/kprobes/blacklist.gz");
    const absl::StatusOr<Blacklist> blacklist = BlacklistOf(text);
    ASSERT_TRUE(blacklist.ok()) << blacklist.status();
    EXPECT_FALSE(blacklist->empty());
    EXPECT_FALSE(blacklist->Contains(0));
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      AddrRange range;
      ASSERT_TRUE(ParseBlacklistLine(text.substr(at, end - at), &range));
      if (range.begin < range.end) {
        EXPECT_TRUE(blacklist->Contains(range.begin));
        EXPECT_TRUE(blacklist->Contains(range.end - 1));
      }
      at = end + 1;
    }
  }
}

TEST(Blacklist, BugCase45_ListedByRangeNotByName) {
  const absl::StatusOr<Blacklist> blacklist =
      BlacklistOf("0xffffffff81e0a340-0xffffffff81e0a4c0\tdo_trp\n");
  ASSERT_TRUE(blacklist.ok()) << blacklist.status();
  EXPECT_TRUE(blacklist->Contains(0xffffffff81e0a340));
  EXPECT_TRUE(blacklist->Contains(0xffffffff81e0a4bf));
  EXPECT_FALSE(blacklist->Contains(0xffffffff81e0a33f));
  EXPECT_FALSE(blacklist->Contains(0xffffffff81e0a4c0));
  // The other do_trp, elsewhere.
  EXPECT_FALSE(blacklist->Contains(0xffffffff81200000));
}

TEST(Blacklist, BugCase45_HiddenAddressesFilterNothing) {
  const absl::StatusOr<Blacklist> blacklist = BlacklistOf(
      "0x0000000000000000-0x0000000000000000\tdo_trp\n"
      "0x0000000000000000-0x0000000000000000\tdo_other\n");
  ASSERT_TRUE(blacklist.ok()) << blacklist.status();
  EXPECT_TRUE(blacklist->empty());
  EXPECT_FALSE(blacklist->Contains(0));
}

}  // namespace
}  // namespace ksweep
