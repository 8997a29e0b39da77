// What the kernel says of an attachment, against what was asked for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "ksweep/attachment.h"
#include "ksweep/status.h"
#include "lib/base/bpf_sys.h"
#include "selftests/testing/fake_bpf.h"
#include "selftests/unit/attach/attach_fixture.h"

namespace ksweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using ReadBackTest = AttachFixture;

TEST_F(ReadBackTest, AllThere) {
  options_.max_per_link = 2;
  fake_.options().missed = 3;
  const auto attachment = Attach(MakeResolution(5));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  const uint32_t calls_before = fake_.calls();
  const auto report = attachment->ReadBack();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->cnt, 5u);
  EXPECT_EQ(report->missed, 9u);
  EXPECT_TRUE(report->matches());
  EXPECT_TRUE(report->cookies_told);
  EXPECT_EQ(report->untold_links, 0u);
  EXPECT_EQ(fake_.calls() - calls_before, 6u) << "two for each link";
}

struct TamperCase {
  const char* name;
  void (*tamper)(std::vector<uint64_t>& addrs, std::vector<uint64_t>& cookies);
  std::vector<uint32_t> absent;
  std::vector<uint64_t> unasked;
  std::vector<uint32_t> wrong_cookies;  // slots
};

const TamperCase kTamperCases[] = {
    {"any order",
     [](std::vector<uint64_t>& addrs, std::vector<uint64_t>& cookies) {
       std::reverse(addrs.begin(), addrs.end());
       std::reverse(cookies.begin(), cookies.end());
     },
     {},
     {},
     {}},
    {"two cookies swapped",
     [](std::vector<uint64_t>&, std::vector<uint64_t>& cookies) {
       std::swap(cookies[0], cookies[2]);
     },
     {},
     {},
     {0, 2}},
    {"another function",
     [](std::vector<uint64_t>& addrs, std::vector<uint64_t>&) {
       addrs[1] = AddrOf(77);
     },
     {1},
     {AddrOf(77)},
     {}},
    {"a location is its function",
     [](std::vector<uint64_t>& addrs, std::vector<uint64_t>&) {
       for (uint64_t& addr : addrs) addr += 4;
     },
     {},
     {},
     {}},
    {"one twice",
     [](std::vector<uint64_t>& addrs, std::vector<uint64_t>&) {
       addrs[2] = addrs[0];
     },
     {2},
     {AddrOf(0)},
     {}},
    {"between functions",
     [](std::vector<uint64_t>& addrs, std::vector<uint64_t>&) {
       addrs[0] += 16;
     },
     {0},
     {AddrOf(0) + 16},
     {}},
};

TEST_F(ReadBackTest, Differences) {
  const auto attachment = Attach(MakeResolution(3));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  for (const TamperCase& c : kTamperCases) {
    fake_.options().tamper_info = c.tamper;
    const auto report = attachment->ReadBack();
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->absent, c.absent) << c.name;
    std::vector<uint64_t> unasked;
    for (const auto& u : report->unasked) unasked.push_back(u.addr);
    EXPECT_EQ(unasked, c.unasked) << c.name;
    std::vector<uint32_t> wrong;
    for (const auto& w : report->wrong_cookies) wrong.push_back(w.slot);
    EXPECT_EQ(wrong, c.wrong_cookies) << c.name;
    EXPECT_EQ(report->matches(),
              c.absent.empty() && c.unasked.empty() && c.wrong_cookies.empty());
  }
}

TEST_F(ReadBackTest, ReportNamesDifferences) {
  const auto attachment = Attach(MakeResolution(20));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  fake_.options().tamper_info = [](std::vector<uint64_t>& addrs,
                                   std::vector<uint64_t>& cookies) {
    addrs[1] = 0x123;
    std::reverse(cookies.begin() + 2, cookies.end());
  };
  const auto report = attachment->ReadBack();
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(
      report->ToString(),
      AllOf(HasSubstr("the kernel has 20 functions, missed 0 hits: 1 absent, 1 "
                      "not asked for, 18 with another cookie\n"),
            HasSubstr("  absent: slot 1\n"),
            HasSubstr("  not asked for: 0x123, cookie 1\n"),
            HasSubstr("  slot 2 has cookie 19 instead of 2\n"),
            HasSubstr("  … and 10 more\n")));
}

struct KernelCase {
  const char* name;
  size_t known_info_bytes;
  bool tells_cookies;
  bool hides_addrs;
  uint64_t cnt;
  uint32_t untold_links;
  bool cookies_told;
};

constexpr KernelCase kKernelCases[] = {
    {"Linux 6.9", 64, true, false, 3, 0, true},
    {"Linux 6.7, a structure that ends before cookies", 40, true, false, 3, 0,
     false},
    {"Linux 6.7, a structure that is longer for another kind", 64, false, false,
     3, 0, false},
    {"before Linux 6.6", 16, true, false, 0, 1, true},
    {"kptr_restrict", 64, true, true, 3, 1, true},
};

TEST_F(ReadBackTest, OlderKernelsTellLess) {
  for (const KernelCase& c : kKernelCases) {
    fake_.options().known_info_bytes = c.known_info_bytes;
    fake_.options().tells_cookies = c.tells_cookies;
    fake_.options().hides_addrs = c.hides_addrs;
    const auto attachment = Attach(MakeResolution(3));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    const auto report = attachment->ReadBack();
    ASSERT_TRUE(report.ok()) << c.name << ": " << report.status();
    EXPECT_EQ(report->cnt, c.cnt) << c.name;
    EXPECT_EQ(report->untold_links, c.untold_links) << c.name;
    EXPECT_EQ(report->cookies_told, c.cookies_told) << c.name;
    EXPECT_TRUE(report->matches()) << c.name << ": " << report->ToString();
  }
}

TEST_F(ReadBackTest, ErrorsKeepTheErrno) {
  const auto attachment = Attach(MakeResolution(3));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  for (uint32_t call : {0u, 1u}) {
    fake_.FailCall(fake_.calls() + call, EACCES);
    EXPECT_EQ(ErrnoOf(attachment->ReadBack().status()), EACCES) << call;
  }
}

TEST_F(ReadBackTest, NothingAttached) {
  const auto report = Attachment().ReadBack();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->cnt, 0u);
  EXPECT_TRUE(report->matches());
}

}  // namespace
}  // namespace ksweep
