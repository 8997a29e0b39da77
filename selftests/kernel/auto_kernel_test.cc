// The best kind of the kernel, found by itself, and what becomes of too many
// functions where that is a link for each.

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ksweep/status.h"
#include "selftests/kernel/kernel_test_util.h"

namespace ksweep {
namespace {

using ::testing::AllOf;
using testing::Counter;
using ::testing::HasSubstr;
using testing::ResolveHere;
using testing::TriggerGetppid;

Resolution ResolveFor(Kind kind, const std::vector<std::string>& requests) {
  ResolveOptions options;
  options.kinds = {kind};
  return ResolveHere(requests, options);
}

TEST(Auto, ASmallSetIsAttachedOnEveryKernel) {
  const std::unique_ptr<Counter> counter = Counter::LoadAuto(100);
  ASSERT_NE(counter, nullptr);
  const bool has_multi = testing::KernelHas("CONFIG_FPROBE");
  EXPECT_EQ(counter->choice().kind,
            has_multi ? Kind::kKprobeMulti : Kind::kKprobe);
  if (!has_multi) {
    EXPECT_THAT(counter->choice().why, HasSubstr("not kprobe.multi ("));
  }
  printf("chosen: %s\n", counter->choice().why.c_str());

  const Resolution resolution =
      ResolveFor(counter->choice().kind, {"syscall:getppid", "vfs_rea*"});
  ASSERT_GE(resolution.targets().size(), 2u);
  const std::vector<uint32_t> getppid = resolution.ForRequest(0);
  ASSERT_EQ(getppid.size(), 1u);
  counter->OnlyThisProcess();
  absl::StatusOr<Attachment> attachment =
      Attach(resolution, counter->program());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(attachment->kind(), counter->choice().kind);
  EXPECT_EQ(attachment->links().size(),
            has_multi ? 1u : resolution.targets().size());
  TriggerGetppid(11);
  EXPECT_EQ(counter->At(getppid[0]).cnt, 11u);
  const absl::StatusOr<ReadBackReport> report = attachment->ReadBack();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->matches()) << report->ToString();
  printf("%s", attachment->Report().ToString().c_str());

  ASSERT_TRUE(attachment->Detach().ok());
  TriggerGetppid(11);
  EXPECT_EQ(counter->At(getppid[0]).cnt, 11u);
}

// Single kprobes on everything would take longer than anybody waits.
TEST(Auto, AHugeSetOfSingleKprobesIsRefusedWithNeedAndHave) {
  const Resolution resolution = ResolveFor(Kind::kKprobe, {"*"});
  ASSERT_GT(resolution.targets().size(), 20000u);
  const std::unique_ptr<Counter> counter = Counter::Load(Kind::kKprobe, 1);
  ASSERT_NE(counter, nullptr);
  AttachOptions options;
  const absl::Status too_many =
      Attach(resolution, counter->program(), options).status();
  EXPECT_EQ(too_many.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(too_many.message()),
              AllOf(HasSubstr(std::to_string(resolution.targets().size())),
                    HasSubstr("max_single is 1000")));

  options.max_single = UINT32_MAX;
  options.raise_fd_limit = true;
  const absl::Status no_fds =
      Attach(resolution, counter->program(), options).status();
  EXPECT_EQ(no_fds.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoOf(no_fds), EMFILE) << no_fds;
  printf("%s\n", std::string(no_fds.message()).c_str());
  TriggerGetppid(5);
  EXPECT_EQ(counter->all_hits(), 0u);
}

TEST(Auto, TheErrorSaysThatTheKernelHasNoSuchKind) {
  if (testing::KernelHas("CONFIG_FPROBE")) {
    GTEST_SKIP() << "this kernel is built with CONFIG_FPROBE";
  }
  const Resolution resolution = ResolveFor(Kind::kKprobeMulti, {"vfs_*"});
  const std::unique_ptr<Counter> counter =
      Counter::Load(Kind::kKprobeMulti, resolution.targets().size());
  ASSERT_NE(counter, nullptr);
  const absl::Status status = Attach(resolution, counter->program()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_EQ(ErrnoOf(status), EOPNOTSUPP);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the kernel cannot attach kprobe.multi ("));
}

}  // namespace
}  // namespace ksweep
