// Cookies of functions that several requests match, under each policy.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ksweep/resolve.h"
#include "selftests/unit/resolve/resolve_fixture.h"

namespace ksweep {
namespace {

using testing::Lists;
using testing::ResolveLists;

struct CookieRequest {
  const char* text;
  std::optional<uint64_t> cookie;
};

struct CookieCase {
  const char* name;
  std::vector<CookieRequest> requests;
  // By policy, in the order of the enumeration: the cookies of vfs_read, or
  // "conflict".
  std::vector<std::string> want;
};

const CookieCase kCookieCases[] = {
    {"equal ones merge", {{"vfs_read", 5}, {"vfs_*", 5}}, {"5", "5", "5", "5"}},
    {"one without has no say",
     {{"vfs_read", std::nullopt}, {"vfs_*", 7}},
     {"7", "7", "7", "7"}},
    {"exact after glob",
     {{"vfs_*", 1}, {"vfs_read", 2}},
     {"conflict", "1", "2", "1,2"}},
    {"exact before glob",
     {{"vfs_read", 2}, {"vfs_*", 1}},
     {"conflict", "2", "2", "1,2"}},
    {"two exact",
     {{"vfs_read", 2}, {"0xffffffff81000100", 3}, {"vfs_*", 9}},
     {"conflict", "2", "conflict", "2,3,9"}},
    {"two exact that agree, and a glob",
     {{"vfs_*", 9}, {"vfs_read", 2}, {"0xffffffff81000100", 2}},
     {"conflict", "9", "2", "2,9"}},
    {"two globs",
     {{"vfs_*", 4}, {"*_read", 3}},
     {"conflict", "4", "conflict", "3,4"}},
    {"greatest and none given for it",
     {{"vfs_read", UINT64_MAX}, {"vfs_write", 0}},
     {"18446744073709551615", "18446744073709551615", "18446744073709551615",
      "18446744073709551615"}},
    {"zero is a cookie",
     {{"vfs_read", 0}, {"vfs_*", 6}},
     {"conflict", "0", "0", "0,6"}},
};

constexpr CookieConflicts kPolicies[] = {
    CookieConflicts::kReport, CookieConflicts::kFirstWins,
    CookieConflicts::kExactBeatsGlob, CookieConflicts::kSplitLinks};

Lists SomeLists() {
  Lists lists;
  lists.kallsyms =
      "ffffffff81000000 T _stext\n"
      "ffffffff81000100 T vfs_read\n"
      "ffffffff81000200 T vfs_write\n"
      "ffffffff82000000 T _etext\n";
  return lists;
}

Resolution ResolveCookies(const std::vector<CookieRequest>& requests,
                          CookieConflicts policy) {
  std::vector<Request> parsed;
  for (const CookieRequest& request : requests) {
    parsed.push_back(*Request::Parse(request.text));
    if (request.cookie.has_value()) parsed.back().set_cookie(*request.cookie);
  }
  ResolveOptions options;
  options.cookie_conflicts = policy;
  options.missing = OnMissing::kReport;
  absl::StatusOr<Resolution> resolution =
      ResolveLists(SomeLists(), std::move(parsed), options);
  if (!resolution.ok()) {
    ADD_FAILURE() << resolution.status();
    return Resolution();
  }
  return *std::move(resolution);
}

// The cookies of `function`, or the reason why it is left out.
std::string CookiesOf(const Resolution& resolution, std::string_view function) {
  for (const Target& target : resolution.targets()) {
    if (target.name != function) continue;
    std::string text = absl::StrFormat("%d", target.cookie);
    for (uint64_t cookie : target.more_cookies) {
      absl::StrAppendFormat(&text, ",%d", cookie);
    }
    return text;
  }
  for (const Omission& omission : resolution.omissions()) {
    if (omission.name == function &&
        omission.reason == Reason::kCookieConflict) {
      return "conflict";
    }
  }
  return "neither target nor conflict";
}

TEST(CookiePolicies, Policies) {
  for (const CookieCase& c : kCookieCases) {
    for (size_t i = 0; i < c.want.size(); ++i) {
      const Resolution resolution = ResolveCookies(c.requests, kPolicies[i]);
      EXPECT_EQ(CookiesOf(resolution, "vfs_read"), c.want[i])
          << c.name << ", policy " << i;
    }
  }
}

TEST(CookiePolicies, AConflictNamesBothRequests) {
  const Resolution resolution =
      ResolveCookies({{"vfs_*", 1}, {"vfs_read", 2}}, CookieConflicts::kReport);
  ASSERT_EQ(resolution.omissions().size(), 1u);
  EXPECT_EQ(resolution.omissions()[0].detail,
            "'vfs_*' has cookie 1, 'vfs_read' has 2");
  EXPECT_EQ(CookiesOf(resolution, "vfs_write"), "1") << "the other stays";
}

TEST(CookiePolicies, OnlyFirstWinsDependsOnTheOrder) {
  std::mt19937 random(7);
  for (CookieConflicts policy : kPolicies) {
    if (policy == CookieConflicts::kFirstWins) continue;
    for (const CookieCase& c : kCookieCases) {
      std::vector<CookieRequest> shuffled = c.requests;
      std::shuffle(shuffled.begin(), shuffled.end(), random);
      EXPECT_EQ(CookiesOf(ResolveCookies(shuffled, policy), "vfs_read"),
                CookiesOf(ResolveCookies(c.requests, policy), "vfs_read"))
          << c.name;
    }
  }
}

}  // namespace
}  // namespace ksweep
