#include "lib/attach/kinds/perf_kprobe_factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "ksweep/status.h"
#include "lib/attach/linking/isolate.h"
#include "selftests/testing/fake_bpf.h"
#include "selftests/testing/fake_kernel.h"
#include "selftests/testing/fake_perf.h"

namespace ksweep {
namespace {

using testing::FakeKernel;
using ::testing::HasSubstr;

constexpr uint64_t kRead = 0xffffffff81234560;
constexpr uint64_t kSend = 0xffffffffc0801010;

constexpr char kPmuFolder[] = "sys/bus/event_source/devices/kprobe/";

class PerfKprobeFactoryTest : public ::testing::Test {
 protected:
  PerfKprobeFactoryTest() {
    kernel_.WritePath(std::string(kPmuFolder) + "type", "8\n");
    kernel_.WritePath(std::string(kPmuFolder) + "format/retprobe",
                      "config:0\n");
    fake_.AddFunction(kRead, "vfs_read");
    fake_.AddFunction(kSend, "drvx:send_q");
    prog_fd_ = fake_.AddProgram();
    read_.addr = kRead;
    read_.name = "vfs_read";
    send_.addr = kSend;
    send_.name = "send_q";
    send_.module = "drvx";
    send_.cookie = 1;
    fds_before_ = CountOpenFds();
  }

  void TearDown() override { EXPECT_EQ(CountOpenFds(), fds_before_); }

  PerfKprobeFactory Make(Kind kind = Kind::kKprobe,
                         RaiseLimit raise = RaiseLimit::kNo) {
    return {fake_, fake_, kernel_.files(), kind, prog_fd_, raise};
  }

  FakePerf fake_;
  FakeKernel kernel_;
  int prog_fd_ = -1;
  AttachPoint read_, send_;
  size_t fds_before_ = 0;
};

TEST_F(PerfKprobeFactoryTest, LinksOfOneFunction) {
  PerfKprobeFactory factory = Make(Kind::kKretprobe);
  EXPECT_EQ(factory.max_per_link(), 1u);
  ASSERT_TRUE(factory.Reserve(2).ok());
  EXPECT_EQ(fake_.calls(), 0u);
  const absl::StatusOr<Link> read = factory.MakeLink({&read_, 1});
  const absl::StatusOr<Link> send = factory.MakeLink({&send_, 1});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_TRUE(send.ok()) << send.status();
  ASSERT_EQ(fake_.attached().size(), 2u);
  EXPECT_EQ(fake_.attached()[0].addr, kRead);
  EXPECT_EQ(fake_.attached()[0].cookie, 0u);
  EXPECT_EQ(fake_.attached()[1].addr, kSend);
  EXPECT_EQ(fake_.attached()[1].cookie, 1u);
  EXPECT_TRUE(fake_.attached()[1].at_return);
  EXPECT_EQ(fake_.attached()[1].name, "");
  EXPECT_EQ(CountOpenFds(), fds_before_ + 2);
}

TEST_F(PerfKprobeFactoryTest, ByNameWithTheModule) {
  PerfKprobeFactory factory = Make();
  send_.by_name = true;
  ASSERT_TRUE(factory.MakeLink({&send_, 1}).ok());
  EXPECT_EQ(fake_.attached()[0].addr, 0u);
  EXPECT_EQ(fake_.attached()[0].name, "drvx:send_q");
}

TEST_F(PerfKprobeFactoryTest, BugCase61_TooManyFunctionsAreRefusedAtOnce) {
  fake_.options().open_fds = 3;
  fake_.options().limit = {.soft = 10, .hard = 64};
  const absl::Status status = Make().Reserve(12);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("kprobe on 12 functions, one by one: needs 12 "));
  EXPECT_EQ(fake_.options().limit.soft, 10u);
  EXPECT_TRUE(Make(Kind::kKprobe, RaiseLimit::kYes).Reserve(12).ok());
  EXPECT_EQ(fake_.options().limit.soft, 19u);
  EXPECT_EQ(fake_.calls(), 0u);
}

TEST_F(PerfKprobeFactoryTest, WithoutThePmu) {
  FakeKernel without;
  PerfKprobeFactory factory(fake_, fake_, without.files(), Kind::kKprobe,
                            prog_fd_, RaiseLimit::kNo);
  EXPECT_EQ(factory.Reserve(1).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(factory.MakeLink({&read_, 1}).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(fake_.calls(), 0u);
}

TEST_F(PerfKprobeFactoryTest, SeveralFunctionsAreNoLink) {
  const std::vector<AttachPoint> points = {read_, send_};
  EXPECT_EQ(Make().MakeLink(points).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(fake_.calls(), 0u);
}

// What is about a function is about a target, so that the others are attached.
TEST_F(PerfKprobeFactoryTest, RefusedFunctionsAreTargetsAtFault) {
  PerfKprobeFactory factory = Make();
  for (int err : {EINVAL, EILSEQ, ENOENT, EADDRNOTAVAIL, EBUSY}) {
    fake_.RefuseAddr(kRead, err);
    const absl::StatusOr<Link> link = factory.MakeLink({&read_, 1});
    EXPECT_TRUE(IsAboutFunction(link.status())) << err;
    EXPECT_EQ(FaultOf(ErrnoOf(link.status())), Fault::kTarget) << err;
    EXPECT_EQ(factory.FunctionRefusal(err), PerfKprobeRefusal(err));
  }
  for (int err : {EACCES, EPERM, EMFILE, ENODEV, EOPNOTSUPP}) {
    fake_.RefuseAddr(kRead, err);
    const absl::StatusOr<Link> link = factory.MakeLink({&read_, 1});
    EXPECT_EQ(FaultOf(ErrnoOf(link.status())), Fault::kCall) << err;
  }
}

}  // namespace
}  // namespace ksweep
