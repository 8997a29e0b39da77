#include "lib/attach/kinds/fentry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "ksweep/status.h"
#include "lib/base/bpf_sys.h"
#include "selftests/unit/attach/tracing_fixture.h"

namespace ksweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FentryTest : public TracingFixture {
 protected:
  explicit FentryTest(Kind kind = Kind::kFentry,
                      uint32_t attach_type = kBpfTraceFentry)
      : TracingFixture(kind, attach_type) {}
};

class FexitTest : public FentryTest {
 protected:
  FexitTest() : FentryTest(Kind::kFexit, kBpfTraceFexit) {}
};

TEST_F(FentryTest, AProgramAndALinkForEach) {
  auto attachment = Attach(Core(50));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(attachment->links().size(), 50u);
  EXPECT_EQ(attachment->Report().attached, 50u);
  EXPECT_EQ(attachment->syscalls(), 100u);
  // The links alone hold the programs.
  EXPECT_EQ(CountOpenFds(), fds_before_ + 50);
  for (const FakeTracingSys::Link& link : fake_.links()) {
    ASSERT_EQ(link.ids.size(), 1u);
    EXPECT_THAT(link.cookies, ElementsAre(link.ids[0] - IdOf(0)));
    EXPECT_EQ(link.attach_type, kBpfTraceFentry);
  }
  ASSERT_TRUE(attachment->Detach().ok());
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST_F(FentryTest, OnTheCallersThreadInOrder) {
  options_.threads = 1;
  const auto attachment = Attach(Core(5));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  const std::vector<FakeTracingSys::Link> links = fake_.links();
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(links[i].ids[0], IdOf(i));
}

// No call ends before four are under way: with fewer at a time it would hang.
TEST_F(FentryTest, SeveralAtATimeAndNotMore) {
  constexpr int kThreads = 4;
  std::mutex mutex;
  std::condition_variable changed;
  int loads = 0, now = 0, most = 0;
  fake_.options().on_call = [&](int cmd) {
    if (cmd != kBpfProgLoad) return;
    std::unique_lock<std::mutex> lock(mutex);
    ++loads;
    most = std::max(most, ++now);
    changed.notify_all();
    changed.wait(lock, [&] { return loads >= kThreads; });
    --now;
  };
  options_.threads = kThreads;
  const auto attachment = Attach(Core(40));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(most, kThreads);
}

TEST_F(FentryTest, ModulesByTheirOwnObject) {
  ResolutionText text({kind_});
  for (std::string_view module : {"", "ant", "zoo"}) Add(text, 7, module);
  const auto attachment = Attach(text.Build());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  const std::vector<FakeTracingSys::Link> links = fake_.links();
  ASSERT_EQ(links.size(), 3u);
  EXPECT_EQ(links[0].object, 0u);
  EXPECT_EQ(links[1].object, ant_);
  EXPECT_EQ(links[2].object, zoo_);
  EXPECT_EQ(fake_.loads()[1].btf_id, IdOf(7));
}

TEST_F(FexitTest, RefusedFunctionsDoNotStopTheRest) {
  options_.on_refused = OnRefused::kSkip;
  fake_.AddFunc(0, IdOf(3)).no_trampoline = true;
  fake_.AddFunc(0, IdOf(30)).foreign_programs = 38;
  fake_.AddFunc(0, IdOf(31)).wide_return = true;
  const auto attachment = Attach(Core(60));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(attachment->Report().attached, 57u);
  ASSERT_EQ(attachment->refused().size(), 3u);
  EXPECT_EQ(attachment->refused()[0].slot, 3u);
  EXPECT_EQ(attachment->refused()[0].err, EINVAL);
  EXPECT_THAT(attachment->refused()[0].reason,
              AllOf(HasSubstr("lets no trampoline on it"),
                    HasSubstr("the kernel says 'the last line'")));
  EXPECT_EQ(attachment->refused()[1].err, E2BIG);
  EXPECT_EQ(attachment->refused()[2].err, EOPNOTSUPP);
  EXPECT_FALSE(attachment->IsAttached(30));
  EXPECT_TRUE(attachment->IsAttached(59));
}

TEST_F(FentryTest, ARefusedOneFailsTheWholeByDefault) {
  fake_.AddFunc(0, IdOf(20)).no_trampoline = true;
  const absl::Status status = AttachError(Core(60));
  EXPECT_EQ(ErrnoOf(status), EINVAL);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("func_20"));
}

// BugCase67: loads and cannot attach.
TEST_F(FentryTest, BugCase67_NoTrampolinesIsTheCall) {
  fake_.options().has_direct_calls = false;
  options_.on_refused = OnRefused::kSkip;
  const absl::Status status = AttachError(Core(100));
  EXPECT_EQ(ErrnoOf(status), 524);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("refused for each of 16 functions"));
}

TEST_F(FentryTest, FailureAtEachStepLeavesNothing) {
  const int errors[] = {EPERM, ENOMEM, EMFILE, ENFILE, ENOSYS};
  for (uint32_t call = 0; call < 40; ++call) {
    const int err = errors[call % std::size(errors)];
    fake_.FailCall(fake_.calls() + call, err);
    EXPECT_EQ(ErrnoOf(AttachError(Core(20))), err) << call;
  }
}

TEST_F(FentryTest, CancelledInTheMiddle) {
  options_.progress = [](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, 60u);
    return done < 30;
  };
  EXPECT_EQ(AttachError(Core(60)).code(), absl::StatusCode::kCancelled);
}

TEST_F(FentryTest, ADescriptorAloneIsNotEnough) {
  program_.image = nullptr;
  const absl::Status status = AttachError(Core(2));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("bpf_program"));
}

// BugCase61: what it takes is known before the first is opened.
TEST_F(FentryTest, BugCase61_DescriptorsAreCountedFirst) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low = {fds_before_ + 40, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const absl::Status status = AttachError(Core(60));
  options_.raise_fd_limit = true;
  const bool raised = Attach(Core(60)).ok();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(ErrnoOf(status), EMFILE);
  EXPECT_TRUE(raised);
  EXPECT_GT(fake_.calls(), 0u);
}

}  // namespace
}  // namespace ksweep
