#include "lib/attach/kinds/perf_kprobe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <utility>

#include "ksweep/status.h"
#include "lib/base/errno_status.h"
#include "selftests/testing/fake_bpf.h"
#include "selftests/testing/fake_perf.h"

namespace ksweep {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRead = 0xffffffff81234560;
constexpr uint64_t kBad = 0xffffffff81999990;

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

// A fake kernel, a program in it, and a call that works.
class PerfKprobe : public ::testing::Test {
 protected:
  PerfKprobe() : kprobes_(fake_, fake_, fake_.options().pmu) {
    fake_.AddFunction(kRead, "vfs_read");
    call_.prog_fd = fake_.AddProgram();
    call_.addr = kRead;
    call_.name = "vfs_read";
    call_.cookie = 7;
    fds_before_ = CountOpenFds();
  }

  // Without links there are no cookies.
  void BeforeLinux515() {
    fake_.options().has_perf_links = false;
    call_.cookie = 0;
  }

  absl::Status Refused() {
    const absl::StatusOr<Link> link = kprobes_.Attach(call_);
    EXPECT_FALSE(link.ok());
    EXPECT_EQ(CountOpenFds(), fds_before_);
    return link.status();
  }

  FakePerf fake_;
  PerfKprobes kprobes_;
  PerfKprobeCall call_;
  size_t fds_before_ = 0;
};

TEST_F(PerfKprobe, ByAddress) {
  {
    absl::StatusOr<Link> link = kprobes_.Attach(call_);
    ASSERT_TRUE(link.ok()) << link.status();
    EXPECT_EQ(fake_.calls(), 2u);
    ASSERT_EQ(fake_.attached().size(), 1u);
    const FakePerf::Attached& attached = fake_.attached()[0];
    EXPECT_TRUE(attached.by_link);
    EXPECT_FALSE(attached.at_return);
    EXPECT_EQ(attached.addr, kRead);
    EXPECT_EQ(attached.name, "");
    EXPECT_EQ(attached.cookie, 7u);
    EXPECT_EQ(attached.prog_fd, call_.prog_fd);
    EXPECT_EQ(attached.fd, link->fd());
    EXPECT_EQ(CountOpenFds(), fds_before_ + kFdsPerPerfKprobe);
    EXPECT_EQ(fake_.OpenCnt(), 1u);
  }
  EXPECT_EQ(fake_.OpenCnt(), 0u);
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST_F(PerfKprobe, AtReturn) {
  call_.kind = Kind::kKretprobe;
  ASSERT_TRUE(kprobes_.Attach(call_).ok());
  EXPECT_TRUE(fake_.attached()[0].at_return);
}

TEST_F(PerfKprobe, ByNameWhereAddressesAreHidden) {
  call_.addr = 0;
  ASSERT_TRUE(kprobes_.Attach(call_).ok());
  EXPECT_EQ(fake_.attached()[0].addr, 0u);
  EXPECT_EQ(fake_.attached()[0].name, "vfs_read");

  fake_.AddFunction(kBad, "drvx:probe_q");
  call_.name = std::string_view("probe_q, no more", 7);
  call_.module = "drvx";
  ASSERT_TRUE(kprobes_.Attach(call_).ok());
  EXPECT_EQ(fake_.attached()[1].name, "drvx:probe_q");
}

TEST_F(PerfKprobe, BugCase38_AnAmbiguousNameIsSaidToBe) {
  fake_.AddFunction(kBad, "vfs_read");
  call_.addr = 0;
  const absl::Status status = Refused();
  EXPECT_EQ(ErrnoOf(status), EADDRNOTAVAIL);
  EXPECT_THAT(Text(status), HasSubstr("kprobe on vfs_read by name"));
  EXPECT_THAT(Text(status), HasSubstr("several functions have the name"));
  EXPECT_TRUE(IsAboutFunction(status));
  // By address there is nothing to be ambiguous about.
  call_.addr = kBad;
  EXPECT_TRUE(kprobes_.Attach(call_).ok());
}

struct ErrnoCase {
  int err;
  absl::StatusCode code;
  bool about_function;
  const char* says;
};

constexpr ErrnoCase kOpenCases[] = {
    {EINVAL, absl::StatusCode::kInvalidArgument, true, "blacklist"},
    {EILSEQ, absl::StatusCode::kInvalidArgument, true, "start of an instruct"},
    {ENOENT, absl::StatusCode::kNotFound, true, "no function there"},
    {EADDRNOTAVAIL, absl::StatusCode::kFailedPrecondition, true, "by address"},
    {EBUSY, absl::StatusCode::kUnavailable, true, "livepatch"},
    {EACCES, absl::StatusCode::kPermissionDenied, false, "perf_event_paranoid"},
    {EPERM, absl::StatusCode::kPermissionDenied, false, "lockdown"},
    {EMFILE, absl::StatusCode::kResourceExhausted, false, "RLIMIT_NOFILE"},
    {ENFILE, absl::StatusCode::kResourceExhausted, false, "fs.file-max"},
    {ENOMEM, absl::StatusCode::kResourceExhausted, false, "no memory"},
    {ENODEV, absl::StatusCode::kUnavailable, false, "CPU"},
    {E2BIG, absl::StatusCode::kUnimplemented, false, "too old"},
    {EOPNOTSUPP, absl::StatusCode::kUnimplemented, false, "no kprobes"},
    {ENOSYS, absl::StatusCode::kUnimplemented, false, "CONFIG_PERF_EVENTS"},
    {kKernelEnotsupp, absl::StatusCode::kUnimplemented, false, "(524)"},
    {EIO, absl::StatusCode::kUnknown, false, "Input/output error"},
};

TEST_F(PerfKprobe, BugCase52_EveryErrnoOfOpeningTheEvent) {
  for (const ErrnoCase& c : kOpenCases) {
    fake_.RefuseAddr(kBad, c.err);
    call_.addr = kBad;
    call_.name = "bad_q";
    const absl::Status status = Refused();
    EXPECT_EQ(status.code(), c.code) << c.err;
    EXPECT_EQ(ErrnoOf(status), c.err);
    EXPECT_EQ(IsAboutFunction(status), c.about_function) << c.err;
    EXPECT_THAT(Text(status),
                HasSubstr("kprobe on bad_q at 0xffffffff81999990"));
    EXPECT_THAT(Text(status), HasSubstr(c.says));
    EXPECT_THAT(PerfKprobeRefusal(c.err), HasSubstr(c.says));
  }
}

constexpr ErrnoCase kLinkCases[] = {
    {EINVAL, absl::StatusCode::kFailedPrecondition, false, "PrepareProgram()"},
    {EBADF, absl::StatusCode::kInvalidArgument, false, "descriptor"},
    {EACCES, absl::StatusCode::kPermissionDenied, false, "security module"},
    {EPERM, absl::StatusCode::kPermissionDenied, false, "CAP_BPF"},
    {EMFILE, absl::StatusCode::kResourceExhausted, false, "RLIMIT_NOFILE"},
    {ENFILE, absl::StatusCode::kResourceExhausted, false, "fs.file-max"},
    {ENOMEM, absl::StatusCode::kResourceExhausted, false, "no memory"},
    {EOPNOTSUPP, absl::StatusCode::kUnimplemented, false, "no programs"},
    {ENOSYS, absl::StatusCode::kUnimplemented, false, "CONFIG_BPF_SYSCALL"},
    {EIO, absl::StatusCode::kUnknown, false, "Input/output error"},
};

TEST_F(PerfKprobe, EveryErrnoOfMakingTheLink) {
  for (const ErrnoCase& c : kLinkCases) {
    fake_.FailCall(fake_.calls() + 1, c.err);
    const absl::Status status = Refused();
    EXPECT_EQ(status.code(), c.code) << c.err;
    EXPECT_EQ(ErrnoOf(status), c.err);
    EXPECT_FALSE(IsAboutFunction(status)) << c.err;
    EXPECT_THAT(Text(status), HasSubstr(c.says));
    EXPECT_FALSE(kprobes_.without_links()) << c.err;
  }
  EXPECT_TRUE(fake_.attached().empty());
}

TEST_F(PerfKprobe, TheEventItselfBeforeLinux515) {
  BeforeLinux515();
  {
    absl::StatusOr<Link> link = kprobes_.Attach(call_);
    ASSERT_TRUE(link.ok()) << link.status();
    EXPECT_TRUE(kprobes_.without_links());
    // Event, refused link, two to find out why, two for the event.
    EXPECT_EQ(fake_.calls(), 6u);
    EXPECT_FALSE(fake_.attached()[0].by_link);
    EXPECT_TRUE(fake_.attached()[0].enabled);
    EXPECT_EQ(fake_.attached()[0].fd, link->fd());
    EXPECT_EQ(CountOpenFds(), fds_before_ + kFdsPerPerfKprobe);
    // Not asked again.
    ASSERT_TRUE(kprobes_.Attach(call_).ok());
    EXPECT_EQ(fake_.calls(), 9u);
  }
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST_F(PerfKprobe, CookiesNeedLinks) {
  BeforeLinux515();
  call_.cookie = 1;
  for (int round = 0; round < 2; ++round) {
    const absl::Status status = Refused();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(Text(status), HasSubstr("cookie"));
    EXPECT_THAT(Text(status), HasSubstr("5.15"));
  }
  EXPECT_TRUE(fake_.attached().empty());
  // The second time nothing is tried.
  EXPECT_EQ(fake_.calls(), 4u);
}

// The ioctl would take it, and its helpers would read what is not there.
TEST_F(PerfKprobe, AProgramOfAnotherKindIsNotForcedIn) {
  for (uint32_t attach_type : {kBpfTraceKprobeMulti, kBpfTraceKprobeSession}) {
    call_.prog_fd = fake_.AddProgram(attach_type);
    call_.cookie = 0;
    fds_before_ = CountOpenFds();
    const absl::Status status = Refused();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(ErrnoOf(status), EINVAL);
    EXPECT_FALSE(IsAboutFunction(status));
    EXPECT_FALSE(kprobes_.without_links());
  }
  EXPECT_TRUE(fake_.attached().empty());
}

// Each step in turn fails; what was made before it is gone.
TEST_F(PerfKprobe, NoStepLeavesADescriptor) {
  for (uint32_t step = 0; step < 2; ++step) {
    fake_.FailCall(fake_.calls() + step, EMFILE);
    EXPECT_EQ(ErrnoOf(Refused()), EMFILE) << step;
  }
  BeforeLinux515();
  // A probe that fails proves nothing: not the ioctl then, and the link's own
  // errno. Asked again the next time.
  for (uint32_t step : {0u, 1u, 4u, 5u}) {
    PerfKprobes fresh(fake_, fake_, fake_.options().pmu);
    fake_.FailCall(fake_.calls() + step, EMFILE);
    const absl::StatusOr<Link> link = fresh.Attach(call_);
    EXPECT_EQ(ErrnoOf(link.status()), EMFILE) << step;
    EXPECT_EQ(CountOpenFds(), fds_before_);
  }
  for (uint32_t step : {2u, 3u}) {
    PerfKprobes fresh(fake_, fake_, fake_.options().pmu);
    fake_.FailCall(fake_.calls() + step, EMFILE);
    const absl::StatusOr<Link> link = fresh.Attach(call_);
    EXPECT_EQ(ErrnoOf(link.status()), EINVAL) << step;
    EXPECT_EQ(CountOpenFds(), fds_before_);
    ASSERT_TRUE(fresh.Attach(call_).ok()) << step;
  }
  EXPECT_EQ(fake_.OpenCnt(), 0u);
}

TEST_F(PerfKprobe, WithoutPrivilege) {
  fake_.options().privileged = false;
  const absl::Status status = Refused();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Text(status), HasSubstr("CAP_PERFMON"));
  EXPECT_EQ(fake_.calls(), 1u);
}

TEST_F(PerfKprobe, CallsThatCannotBe) {
  call_.kind = Kind::kKprobeMulti;
  EXPECT_EQ(Refused().code(), absl::StatusCode::kInvalidArgument);
  call_.kind = Kind::kKprobe;
  call_.addr = 0;
  call_.name = "";
  EXPECT_EQ(Refused().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(fake_.calls(), 0u);
}

}  // namespace
}  // namespace ksweep
