// The best kind of the kernel, found by itself, and what becomes of too many
// functions where that is a link for each.

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ksweep/status.h"
#include "selftests/kernel/kernel_test_util.h"
#include "selftests/testing/fake_kernel.h"

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

// Two counting programs for one attachment.
struct TwoCounters {
  std::unique_ptr<Counter> by_trampoline = Counter::Open();
  std::unique_ptr<Counter> by_kprobe = Counter::Open();

  absl::StatusOr<std::vector<KindProgram>> Prepare(Kind trampoline,
                                                   Kind kprobe) const {
    const WantedProgram wanted[] = {{trampoline, by_trampoline->program()},
                                    {kprobe, by_kprobe->program()}};
    return PreparePrograms(wanted);
  }
};

struct TwoKinds {
  Kind trampoline;
  Kind kprobe;
  uint64_t hits_per_call;
};

constexpr TwoKinds kTwoKinds[] = {
    {Kind::kFentryMulti, Kind::kKprobeMulti, 1},
    {Kind::kFexitMulti, Kind::kKretprobeMulti, 1},
    {Kind::kFsessionMulti, Kind::kKprobeSession, 2},
};

// Has BTF everywhere, and is what getppid(2) calls.
constexpr char kGetppid[] = "__do_sys_getppid";

// What has no BTF for a trampoline goes to kprobes, and all where the kernel
// has no tracing_multi links.
void ExpectSplit(const TwoKinds& kinds) {
  SCOPED_TRACE(KindName(kinds.trampoline));
  const int descriptors = testing::OpenDescriptors();
  {
    TwoCounters counters;
    const auto programs = counters.Prepare(kinds.trampoline, kinds.kprobe);
    ASSERT_TRUE(programs.ok()) << programs.status();
    const bool has_multi = testing::KernelHasTracingMulti();
    EXPECT_EQ((*programs)[0].absent.empty(), has_multi);
    EXPECT_EQ((*programs)[1].absent, "");

    ResolveOptions options;
    options.kinds = {kinds.trampoline, kinds.kprobe};
    const Resolution resolution = ResolveHere({kGetppid, "[vx]*"}, options);
    const size_t cnt = resolution.targets().size();
    ASSERT_GT(cnt, 300u);
    const auto fitting = static_cast<size_t>(std::count_if(
        resolution.targets().begin(), resolution.targets().end(),
        [&](const Target& t) { return t.kinds.Has(kinds.trampoline); }));
    EXPECT_LT(fitting, cnt);
    ASSERT_TRUE(counters.by_trampoline->LoadOpened(cnt));
    ASSERT_TRUE(counters.by_kprobe->LoadOpened(cnt));
    counters.by_trampoline->OnlyThisProcess();
    counters.by_kprobe->OnlyThisProcess();

    absl::StatusOr<Attachment> attachment = Attach(resolution, *programs);
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    const AttachReport report = attachment->Report();
    printf("%s", report.ToString().c_str());
    EXPECT_EQ(report.attached, cnt);
    if (has_multi) {
      EXPECT_TRUE(report.absent.empty());
      ASSERT_EQ(report.kinds.size(), 2u);
      EXPECT_EQ(report.kinds[0].kind, kinds.trampoline);
      EXPECT_EQ(report.kinds[0].attached, fitting);
      EXPECT_EQ(report.kinds[1].attached, cnt - fitting);
    } else {
      ASSERT_EQ(report.kinds.size(), 1u);
      EXPECT_EQ(report.kinds[0].kind, kinds.kprobe);
      EXPECT_EQ(report.kinds[0].attached, cnt);
      EXPECT_EQ(report.links, 1u);
      ASSERT_EQ(report.absent.size(), 1u);
      EXPECT_EQ(report.absent[0].fitting, fitting);
      EXPECT_THAT(report.ToString(), HasSubstr("Linux 7.2"));
    }

    const std::vector<uint32_t> getppid = resolution.ForRequest(0);
    ASSERT_EQ(getppid.size(), 1u);
    const Counter& counter =
        has_multi ? *counters.by_trampoline : *counters.by_kprobe;
    const Counter& other =
        has_multi ? *counters.by_kprobe : *counters.by_trampoline;
    TriggerGetppid(1000);
    EXPECT_EQ(counter.At(getppid[0]).cnt, 1000 * kinds.hits_per_call);
    EXPECT_EQ(other.At(getppid[0]).cnt, 0u);
    EXPECT_EQ(counter.bad_cookies() + other.bad_cookies(), 0u);
    ASSERT_TRUE(attachment->Detach().ok());
    const uint64_t hits = counter.all_hits() + other.all_hits();
    TriggerGetppid(1000);
    EXPECT_EQ(counter.all_hits() + other.all_hits(), hits) << "after the end";
  }
  EXPECT_EQ(testing::OpenDescriptors(), descriptors);
}

TEST(Auto, KprobesTakeWhatTrampolinesCannot) {
  for (const TwoKinds& kinds : kTwoKinds) {
    if (testing::KernelHas("CONFIG_FPROBE")) {
      ExpectSplit(kinds);
      continue;
    }
    const TwoCounters counters;
    const absl::Status status =
        counters.Prepare(kinds.trampoline, kinds.kprobe).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    const std::string text(status.message());
    EXPECT_THAT(
        text,
        AllOf(HasSubstr("Linux 7.2"),
              HasSubstr("; " + std::string(KindName(kinds.trampoline)) + ": "),
              HasSubstr("; " + std::string(KindName(kinds.kprobe)) + ": ")));
    printf("%s\n", text.c_str());
  }
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
