#include "lib/source/filter_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ksweep/status.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using testing::FakeKernel;
using ::testing::IsEmpty;

constexpr bool kPlain = false;
constexpr bool kAddrs = true;

struct LineCase {
  bool with_addrs;
  std::string_view line;
  uint64_t location;
  std::string_view name, module;
};

constexpr LineCase kLineCases[] = {
    {kPlain, "vfs_read", 0, "vfs_read", ""},
    {kPlain, "nd_region_open [libnd]", 0, "nd_region_open", "libnd"},
    {kPlain, "nd_region_open\t[libnd]", 0, "nd_region_open", "libnd"},
    {kPlain, "nd_region_open  [libnd]", 0, "nd_region_open", "libnd"},
    {kPlain, "f.isra.0", 0, "f.isra.0", ""},
    {kPlain, "f.llvm.123 [m]", 0, "f.llvm.123", "m"},
    {kPlain, "drv_\xc3\xa9_on [x\xff]", 0, "drv_\xc3\xa9_on", "x\xff"},
    {kPlain, "ffffffff81000004", 0, "ffffffff81000004", ""},  // odd, but a name
    {kPlain, "[m]", 0, "[m]", ""},
    // Further columns, as of enabled_functions, are none of ours.
    {kPlain, "vfs_read (1) R I", 0, "vfs_read", ""},
    {kPlain, "f [m] (1)", 0, "f", "m"},
    {kPlain, "vfs_read ", 0, "vfs_read", ""},
    {kAddrs, "ffffffff81a02014 vfs_read", 0xffffffff81a02014, "vfs_read", ""},
    {kAddrs, "ffffffffc0000014 nft_x [nf_tables]", 0xffffffffc0000014, "nft_x",
     "nf_tables"},
    {kAddrs, "0xffffffff81a02014 vfs_read", 0xffffffff81a02014, "vfs_read", ""},
    {kAddrs, "0 vfs_read", 0, "vfs_read", ""},
    {kAddrs, "c0123454 vfs_read", 0xc0123454, "vfs_read", ""},
    {kAddrs, "ffffffff81a02014 __ftrace_invalid_address___64",
     0xffffffff81a02014, "__ftrace_invalid_address___64", ""},
};

TEST(ParseFilterFunc, Cases) {
  for (const LineCase& c : kLineCases) {
    FilterFunc func;
    func.location = 1;
    func.module = "left over";
    ASSERT_TRUE(ParseFilterFunc(c.line, c.with_addrs, &func)) << c.line;
    EXPECT_EQ(func.location, c.location) << c.line;
    EXPECT_EQ(func.name, c.name) << c.line;
    EXPECT_EQ(func.module, c.module) << c.line;
  }
}

struct RefusedCase {
  bool with_addrs;
  std::string_view line;
};

constexpr RefusedCase kRefusedCases[] = {
    {kPlain, ""},
    {kPlain, " "},
    {kPlain, " vfs_read"},
    {kPlain, "\t[m]"},
    {kPlain, "f [m"},
    {kPlain, "f ["},
    {kAddrs, ""},
    {kAddrs, "vfs_read"},
    {kAddrs, "ffffffff81a02014"},
    {kAddrs, "ffffffff81a02014 "},
    {kAddrs, "ffffffff81a02014  vfs_read"},
    {kAddrs, "ffffffff81a02014\tvfs_read"},
    {kAddrs, " ffffffff81a02014 vfs_read"},
    {kAddrs, "vfs_read [m]"},
    {kAddrs, "0x vfs_read"},
    {kAddrs, "fffffffff81a02014 vfs_read"},  // 17 digits
    {kAddrs, "ffffffff81a0201g vfs_read"},
    {kAddrs, "ffffffff81a02014 f [m"},
};

TEST(ParseFilterFunc, Refused) {
  for (const RefusedCase& c : kRefusedCases) {
    FilterFunc func;
    EXPECT_FALSE(ParseFilterFunc(c.line, c.with_addrs, &func)) << c.line;
  }
}

// Location, name, module.
using Row = std::tuple<uint64_t, std::string, std::string>;

struct Outcome {
  absl::Status status;
  std::vector<Row> rows;
  uint64_t malformed = 0;
};

Outcome ReadList(const KernelFiles& files, bool with_addrs,
                 size_t most = SIZE_MAX) {
  Outcome outcome;
  absl::StatusOr<ListFile> file =
      ListFile::Open(files, with_addrs ? KernelFile::kFilterFunctionsAddrs
                                       : KernelFile::kFilterFunctions);
  if (!file.ok()) {
    outcome.status = file.status();
    return outcome;
  }
  outcome.status = ReadFilterFuncs(
      &*file, with_addrs,
      [&outcome, most](const FilterFunc& func) {
        outcome.rows.emplace_back(func.location, func.name, func.module);
        return outcome.rows.size() < most;
      },
      &outcome.malformed);
  return outcome;
}

Outcome ReadText(std::string_view text, bool with_addrs,
                 size_t most = SIZE_MAX) {
  FakeKernel kernel;
  kernel.Write(with_addrs ? KernelFile::kFilterFunctionsAddrs
                          : KernelFile::kFilterFunctions,
               text);
  return ReadList(kernel.files(), with_addrs, most);
}

TEST(ReadFilterFuncs, EveryFunctionInOrder) {
  const Outcome plain = ReadText("b\na [m]\nb\n", kPlain);
  EXPECT_EQ(plain.status, absl::OkStatus());
  EXPECT_THAT(plain.rows,
              ElementsAre(Row(0, "b", ""), Row(0, "a", "m"), Row(0, "b", "")));
  EXPECT_EQ(plain.malformed, 0u);

  const Outcome addrs = ReadText("20 b\n14 a [m]\n", kAddrs);
  EXPECT_THAT(addrs.rows, ElementsAre(Row(0x20, "b", ""), Row(0x14, "a", "m")));
}

TEST(ReadFilterFuncs, EmptyList) {
  const Outcome outcome = ReadText("", kPlain);
  EXPECT_EQ(outcome.status, absl::OkStatus());
  EXPECT_THAT(outcome.rows, IsEmpty());
}

TEST(ReadFilterFuncs, CountsLinesOfAnotherForm) {
  const Outcome outcome = ReadText("10 a\n\nnonsense\n20 b [m\n30 c\n", kAddrs);
  EXPECT_EQ(outcome.status, absl::OkStatus());
  EXPECT_THAT(outcome.rows,
              ElementsAre(Row(0x10, "a", ""), Row(0x30, "c", "")));
  EXPECT_EQ(outcome.malformed, 3u);
}

TEST(ReadFilterFuncs, AddsToTheCountGiven) {
  FakeKernel kernel;
  kernel.Write(KernelFile::kFilterFunctions, "\n\n");
  absl::StatusOr<ListFile> file =
      ListFile::Open(kernel.files(), KernelFile::kFilterFunctions);
  ASSERT_TRUE(file.ok()) << file.status();
  uint64_t malformed = 40;
  EXPECT_EQ(
      ReadFilterFuncs(
          &*file, kPlain, [](const FilterFunc&) { return true; }, &malformed),
      absl::OkStatus());
  EXPECT_EQ(malformed, 42u);
}

TEST(ReadFilterFuncs, StopsWhenToldTo) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "f" + std::to_string(i) + "\n";
  for (size_t most : {1, 2, 3, 5000, 99999, 100000}) {
    const Outcome outcome = ReadText(text, kPlain, most);
    EXPECT_EQ(outcome.status, absl::OkStatus());
    EXPECT_EQ(outcome.rows.size(), most);
    EXPECT_EQ(std::get<1>(outcome.rows.back()), "f" + std::to_string(most - 1));
  }
}

TEST(ReadFilterFuncs, NoFile) {
  const FakeKernel kernel;
  for (bool with_addrs : {kPlain, kAddrs}) {
    const Outcome outcome = ReadList(kernel.files(), with_addrs);
    EXPECT_TRUE(absl::IsNotFound(outcome.status)) << outcome.status;
    EXPECT_EQ(ErrnoOf(outcome.status), ENOENT);
  }
}

TEST(ReadFilterFuncs, CannotBeRead) {
  const FakeKernel kernel;
  std::filesystem::create_directories(
      kernel.Path(KernelFile::kFilterFunctions));
  const Outcome outcome = ReadList(kernel.files(), kPlain);
  EXPECT_EQ(ErrnoOf(outcome.status), EISDIR) << outcome.status;
  EXPECT_THAT(outcome.rows, IsEmpty());
}

TEST(ReadFilterFuncs, BothListsOfRealKernelsAgree) {
  for (const char* name : {"linux-6.12.95", "linux-7.3.4"}) {
    const std::string folder =
        testing::DataFolder() + "/" + name + "/sys/kernel/tracing/";
    const Outcome plain = ReadText(
        testing::Gunzip(folder + "available_filter_functions.gz"), kPlain);
    const Outcome addrs = ReadText(
        testing::Gunzip(folder + "available_filter_functions_addrs.gz"),
        kAddrs);
    EXPECT_EQ(plain.malformed, 0u);
    EXPECT_EQ(addrs.malformed, 0u);
    ASSERT_EQ(plain.rows.size(), addrs.rows.size());
    ASSERT_GT(plain.rows.size(), 30000u);
    size_t modules = 0;
    for (size_t i = 0; i < plain.rows.size(); ++i) {
      ASSERT_EQ(std::get<1>(plain.rows[i]), std::get<1>(addrs.rows[i])) << i;
      ASSERT_EQ(std::get<2>(plain.rows[i]), std::get<2>(addrs.rows[i])) << i;
      ASSERT_NE(std::get<0>(addrs.rows[i]), 0u) << i;
      modules += !std::get<2>(addrs.rows[i]).empty();
    }
    EXPECT_GT(modules, 1000u);
  }
}

TEST(ReadFilterFuncs, BugCase01_ModuleTagIsNotOfTheName) {
  const Outcome outcome =
      ReadText("nd_region_open [libnd]\nvfs_fsync\n", kPlain);
  EXPECT_THAT(outcome.rows, ElementsAre(Row(0, "nd_region_open", "libnd"),
                                        Row(0, "vfs_fsync", "")));
}

TEST(ReadFilterFuncs, BugCase08_FirstAndLastLineCount) {
  for (const char* text : {"a\nb\n", "a\nb"}) {
    EXPECT_THAT(ReadText(text, kPlain).rows,
                ElementsAre(Row(0, "a", ""), Row(0, "b", "")));
  }
  EXPECT_THAT(ReadText("a", kPlain).rows, ElementsAre(Row(0, "a", "")));
  EXPECT_THAT(ReadText("10 a [m]", kAddrs).rows,
              ElementsAre(Row(0x10, "a", "m")));
}

TEST(ReadFilterFuncs, BugCase10_LongNames) {
  for (size_t len : {127, 128, 255, 256, 511, 512, 5000}) {
    const std::string a = std::string(len - 1, 'n') + 'a';
    const std::string b = std::string(len - 1, 'n') + 'b';
    EXPECT_THAT(ReadText(absl::StrCat(a, " [drvx]\n", b, "\n"), kPlain).rows,
                ElementsAre(Row(0, a, "drvx"), Row(0, b, "")));
    EXPECT_THAT(
        ReadText(absl::StrCat("14 ", a, " [drvx]\n24 ", b, "\n"), kAddrs).rows,
        ElementsAre(Row(0x14, a, "drvx"), Row(0x24, b, "")));
  }
}

TEST(ReadFilterFuncs, BugCase44_PlaceholdersAreSkipped) {
  const Outcome plain = ReadText(
      "vfs_q\n__ftrace_invalid_address___512\n"
      "__ftrace_invalid_address___64 [drvx]\n__ftrace_invalid_addr\n",
      kPlain);
  EXPECT_THAT(plain.rows, ElementsAre(Row(0, "vfs_q", ""),
                                      Row(0, "__ftrace_invalid_addr", "")));
  EXPECT_EQ(plain.malformed, 0u);  // silently

  const Outcome addrs = ReadText(
      "ffffffff81000004 __ftrace_invalid_address___512\n"
      "ffffffff81000014 vfs_q\n",
      kAddrs);
  EXPECT_THAT(addrs.rows, ElementsAre(Row(0xffffffff81000014, "vfs_q", "")));
  EXPECT_EQ(addrs.malformed, 0u);
}

}  // namespace
}  // namespace ksweep
