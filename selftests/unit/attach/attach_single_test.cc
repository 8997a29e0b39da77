// Kinds with a link for each function, from the resolution to the report.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "ksweep/attach.h"
#include "ksweep/features.h"
#include "ksweep/status.h"
#include "lib/attach/attacher.h"
#include "lib/attach/explain.h"
#include "lib/base/errno_status.h"
#include "selftests/testing/fake_bpf.h"
#include "selftests/testing/fake_kernel.h"
#include "selftests/testing/fake_perf.h"
#include "selftests/unit/attach/attach_fixture.h"

namespace ksweep {
namespace {

using testing::FakeKernel;
using ::testing::HasSubstr;

class AttachSingleTest : public ::testing::Test {
 protected:
  AttachSingleTest() {
    for (size_t i = 0; i < 20; ++i) fake_.AddFunction(AddrOf(i), NameOf(i));
    kernel_.WritePath("sys/bus/event_source/devices/kprobe/type", "8\n");
    kernel_.WritePath("sys/bus/event_source/devices/kprobe/format/retprobe",
                      "config:0\n");
    prog_fd_ = fake_.AddProgram();
    options_.kind = Kind::kKprobe;
    fds_before_ = CountOpenFds();
  }

  absl::StatusOr<Attachment> Attach(const Resolution& resolution) {
    return Attacher(fake_, resolution, options_, fake_, kernel_.files())
        .Attach(prog_fd_);
  }

  absl::StatusOr<Attachment> Attach(const Resolution& resolution,
                                    absl::Span<const ProgramFd> programs) {
    return Attacher(fake_, resolution, options_, fake_, kernel_.files())
        .Attach(programs);
  }

  absl::Status AttachError(const Resolution& resolution) {
    absl::Status status = Attach(resolution).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(fake_.OpenCnt(), 0u) << status;
    EXPECT_EQ(CountOpenFds(), fds_before_) << status;
    return status;
  }

  FakePerf fake_;
  FakeKernel kernel_;
  AttachOptions options_;
  int prog_fd_ = -1;
  size_t fds_before_ = 0;
};

TEST_F(AttachSingleTest, ALinkForEachFunction) {
  {
    const auto attachment = Attach(MakeResolution(3, {Kind::kKprobe}));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    EXPECT_EQ(attachment->kind(), Kind::kKprobe);
    EXPECT_EQ(attachment->links().size(), 3u);
    EXPECT_EQ(attachment->syscalls(), 6u) << "an event and a link for each";
    ASSERT_EQ(fake_.attached().size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(fake_.attached()[i].addr, AddrOf(i));
      EXPECT_EQ(fake_.attached()[i].cookie, i);
      EXPECT_FALSE(fake_.attached()[i].at_return);
    }
    EXPECT_EQ(CountOpenFds(), fds_before_ + 3);
  }
  EXPECT_EQ(fake_.OpenCnt(), 0u);
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST_F(AttachSingleTest, ReturnsBeforeEntries) {
  constexpr KindSet kPair = {Kind::kKprobe, Kind::kKretprobe};
  const auto attachment =
      Attach(MakeResolution(2, kPair),
             {{{Kind::kKprobe, prog_fd_}, {Kind::kKretprobe, prog_fd_}}});
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(attachment->targets().size(), 2u);
  std::vector<bool> at_return;
  for (const auto& made : fake_.attached()) at_return.push_back(made.at_return);
  EXPECT_EQ(at_return, (std::vector<bool>{true, true, false, false}));
}

TEST_F(AttachSingleTest, BugCase61_NeedIsComputedBeforeTheFirstEvent) {
  fake_.options().limit = {.soft = 20, .hard = 40};
  fake_.options().open_fds = 10;
  const absl::Status status = AttachError(MakeResolution(12, {Kind::kKprobe}));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoOf(status), EMFILE);
  EXPECT_THAT(std::string(status.message()), HasSubstr("kprobe on 12"));
  EXPECT_EQ(fake_.calls(), 0u);

  options_.raise_fd_limit = true;
  EXPECT_TRUE(Attach(MakeResolution(12, {Kind::kKprobe})).ok());
  EXPECT_GE(fake_.options().limit.soft, 22u);
}

TEST_F(AttachSingleTest, BugCase61_APairNeedsTwiceAsMany) {
  fake_.options().limit = {.soft = 30, .hard = 30};
  constexpr KindSet kPair = {Kind::kKprobe, Kind::kKretprobe};
  const ProgramFd programs[] = {{Kind::kKprobe, prog_fd_},
                                {Kind::kKretprobe, prog_fd_}};
  EXPECT_EQ(ErrnoOf(Attach(MakeResolution(10, kPair), programs).status()),
            EMFILE);
  EXPECT_EQ(fake_.calls(), 0u);
  EXPECT_TRUE(Attach(MakeResolution(8, kPair), programs).ok());
}

TEST_F(AttachSingleTest, BugCase62_TooManyAreRefusedWithNeedAndHave) {
  options_.max_single = 10;
  EXPECT_TRUE(Attach(MakeResolution(10, {Kind::kKprobe})).ok());
  const uint32_t calls_before = fake_.calls();
  const absl::Status status = AttachError(MakeResolution(11, {Kind::kKprobe}));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("each of 11 functions, and AttachOptions::max_single "
                        "is 10"));
  EXPECT_EQ(fake_.calls(), calls_before);
}

TEST_F(AttachSingleTest, BugCase60_TheOthersAreAttached) {
  options_.on_refused = OnRefused::kSkip;
  fake_.RefuseAddr(AddrOf(0), EILSEQ);
  fake_.RefuseAddr(AddrOf(7), EBUSY);
  fake_.RefuseAddr(AddrOf(19), EADDRNOTAVAIL);
  const auto attachment = Attach(MakeResolution(20, {Kind::kKprobe}));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  ASSERT_EQ(attachment->refused().size(), 3u);
  EXPECT_EQ(attachment->refused()[0].err, EILSEQ);
  EXPECT_EQ(attachment->refused()[1].slot, 7u);
  EXPECT_EQ(attachment->refused()[2].err, EADDRNOTAVAIL);
  EXPECT_EQ(attachment->links().size(), 17u);
  EXPECT_EQ(fake_.OpenCnt(), 17u);
}

TEST_F(AttachSingleTest, AFailureAtAnyCallLeavesNothingBehind) {
  for (uint32_t call = 0; call < 10; ++call) {
    fake_.FailCall(fake_.calls() + call, EPERM);
    EXPECT_EQ(ErrnoOf(AttachError(MakeResolution(5, {Kind::kKprobe}))), EPERM)
        << call;
  }
}

TEST_F(AttachSingleTest, BugCase62_ProgressCancels) {
  std::vector<uint64_t> done;
  options_.progress = [&done](uint64_t attached, uint64_t total) {
    EXPECT_EQ(total, 9u);
    done.push_back(attached);
    return attached < 4;
  };
  const absl::Status status = AttachError(MakeResolution(9, {Kind::kKprobe}));
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(done, (std::vector<uint64_t>{0, 1, 2, 3, 4}));
}

TEST_F(AttachSingleTest, WithoutThePmu) {
  const absl::StatusOr<Attachment> attachment =
      Attacher(fake_, MakeResolution(1, {Kind::kKprobe}), options_, fake_,
               KernelFiles("/nonexistent"))
          .Attach(prog_fd_);
  EXPECT_EQ(attachment.status().code(), absl::StatusCode::kUnimplemented);
}

struct ExplainCase {
  Kind kind;
  int err;
  absl::StatusCode want;
};

// A fake kernel without FPROBE: it has no kprobe.multi, and says so only when
// it is asked.
TEST_F(AttachSingleTest, AFailureIsExplainedByTheKernelsFeatures) {
  const ExplainCase cases[] = {
      {Kind::kKprobeMulti, EOPNOTSUPP, absl::StatusCode::kUnimplemented},
      {Kind::kFentry, kKernelEnotsupp, absl::StatusCode::kUnimplemented},
      // Not about the kernel, whatever it has.
      {Kind::kKprobeMulti, EPERM, CodeOfErrno(EPERM)},
      {Kind::kKprobeMulti, ENOENT, CodeOfErrno(ENOENT)},
      // It has these: the PMU is there.
      {Kind::kKprobe, EINVAL, CodeOfErrno(EINVAL)},
  };
  for (const ExplainCase& c : cases) {
    Features features(fake_, fake_, kernel_.files());
    const absl::Status status = ExplainFailure(
        ErrnoStatus(c.err, "link to 3 functions"), c.kind, features);
    EXPECT_EQ(status.code(), c.want) << status;
    EXPECT_EQ(ErrnoOf(status), c.err);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("link to 3 functions: " + ErrnoText(c.err)));
  }
}

}  // namespace
}  // namespace ksweep
