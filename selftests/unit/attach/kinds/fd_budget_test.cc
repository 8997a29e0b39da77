#include "lib/attach/kinds/fd_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "ksweep/status.h"
#include "selftests/testing/fake_perf.h"

namespace ksweep {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* name;
  int open;
  FdLimit limit;
  uint64_t cnt;
  RaiseLimit raise;
  bool ok;
  uint64_t soft_after;
};

// Of a limit of 100 with 10 open, 90 - kFdsToWorkWith are left.
constexpr Case kCases[] = {
    {"none", 10, {100, 100}, 0, RaiseLimit::kNo, true, 100},
    {"the last that fits", 10, {100, 100}, 86, RaiseLimit::kNo, true, 100},
    {"one too many", 10, {100, 200}, 87, RaiseLimit::kNo, false, 100},
    {"one too many, raised", 10, {100, 200}, 87, RaiseLimit::kYes, true, 101},
    {"not raised in vain", 10, {100, 200}, 86, RaiseLimit::kYes, true, 100},
    {"up to the hard limit", 10, {100, 200}, 186, RaiseLimit::kYes, true, 200},
    {"beyond it", 10, {100, 200}, 187, RaiseLimit::kYes, false, 100},
    {"unlimited",
     10,
     {UINT64_MAX, UINT64_MAX},
     1u << 20,
     RaiseLimit::kNo,
     true,
     UINT64_MAX},
    {"more open than allowed", 150, {100, 100}, 1, RaiseLimit::kNo, false, 100},
    {"open not known", -EACCES, {100, 100}, 500, RaiseLimit::kYes, true, 100},
};

TEST(ReserveFds, Arithmetic) {
  static_assert(kFdsToWorkWith == 4);
  for (const Case& c : kCases) {
    FakePerf fake;
    fake.options().open_fds = c.open;
    fake.options().limit = c.limit;
    const absl::Status status = ReserveFds(fake, c.cnt, "kprobe", c.raise);
    EXPECT_EQ(status.ok(), c.ok) << c.name << ": " << status;
    EXPECT_EQ(fake.options().limit.soft, c.soft_after) << c.name;
    EXPECT_EQ(fake.options().limit.hard, c.limit.hard) << c.name;
  }
}

TEST(ReserveFds, AnUnreadableLimitIsNoReasonToRefuse) {
  FakePerf fake;
  fake.options().limit_hidden = true;
  EXPECT_TRUE(ReserveFds(fake, 1u << 20, "kprobe", RaiseLimit::kNo).ok());
}

std::string TooFewText(FakePerf& fake, RaiseLimit raise) {
  const absl::Status status =
      ReserveFds(fake, 12, "kprobe on 12 functions", raise);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoOf(status), EMFILE);
  return std::string(status.message());
}

TEST(ReserveFds, BugCase61_NeedAndHaveAreSaidBeforeTheStart) {
  FakePerf fake;
  fake.options().open_fds = 3;
  fake.options().limit = {.soft = 10, .hard = 4096};
  const std::string text = TooFewText(fake, RaiseLimit::kNo);
  EXPECT_THAT(text, HasSubstr("kprobe on 12 functions: needs 12 descriptors "
                              "and 4 to work with, of the 10"));
  EXPECT_THAT(text, HasSubstr("3 are open"));
  EXPECT_THAT(text, HasSubstr("raise the limit to 19 (ulimit -n;"));
  EXPECT_THAT(text, HasSubstr("attach to fewer functions"));
}

TEST(ReserveFds, TheHardLimitIsNamedWhereItIsInTheWay) {
  FakePerf fake;
  fake.options().limit = {.soft = 10, .hard = 20};
  EXPECT_THAT(TooFewText(fake, RaiseLimit::kYes),
              HasSubstr("raise the hard limit, which is 20, to 26"));
}

TEST(ReserveFds, ALimitThatCannotBeRaised) {
  FakePerf fake;
  fake.options().limit = {.soft = 10, .hard = 100};
  fake.options().set_limit_errno = EPERM;
  EXPECT_THAT(TooFewText(fake, RaiseLimit::kYes), HasSubstr("security module"));
  EXPECT_EQ(fake.options().limit.soft, 10u);
}

}  // namespace
}  // namespace ksweep
