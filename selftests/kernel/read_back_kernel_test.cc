// Cookies of every function, what the kernel says of them, and pins.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "selftests/kernel/kernel_test_util.h"

namespace ksweep {
namespace {

using testing::AttachCounter;
using testing::Calls;
using testing::Counter;
using testing::Counting;
using testing::ResolveHere;
using testing::TriggerGetppid;

constexpr char kGetppid[] = "__x64_sys_getppid";

class ReadBackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::KernelHas("CONFIG_FPROBE")) return;
    GTEST_SKIP() << "this kernel is built without CONFIG_FPROBE";
  }
};

// One request by address for each function that a glob finds, all instances of
// repeated names among them, with the numbers from 0 on as cookies in no order.
std::vector<Request> ShuffledRequests(const Resolution& resolution) {
  std::vector<uint64_t> cookies(resolution.targets().size());
  std::iota(cookies.begin(), cookies.end(), 0);
  std::mt19937 random(20261130);
  std::shuffle(cookies.begin(), cookies.end(), random);
  std::vector<Request> requests;
  for (size_t i = 0; i < cookies.size(); ++i) {
    requests.push_back(Request::Address(resolution.targets()[i].addr));
    requests.back().set_cookie(cookies[i]);
  }
  std::shuffle(requests.begin(), requests.end(), random);
  return requests;
}

// Every hit has to bring the cookie that was asked for its function.
TEST_F(ReadBackTest, ShuffledCookiesOfEveryFunction) {
  absl::StatusOr<Resolution> resolution =
      Resolve(ShuffledRequests(ResolveHere({"*"})));
  ASSERT_TRUE(resolution.ok()) << resolution.status();
  ASSERT_GT(resolution->targets().size(), 39000u);
  absl::StatusOr<Counting> counting = AttachCounter(*resolution, Calls::kAll);
  ASSERT_TRUE(counting.ok()) << counting.status();

  const absl::StatusOr<ReadBackReport> report = counting->attachment.ReadBack();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->cnt, resolution->targets().size());
  EXPECT_EQ(report->untold_links, 0u);
  EXPECT_TRUE(report->cookies_told);
  EXPECT_TRUE(report->matches()) << report->ToString();

  TriggerGetppid(10);
  ASSERT_EQ(system("ls /proc > /dev/null; sleep 0.2"), 0);
  ASSERT_TRUE(counting->attachment.Detach().ok());
  EXPECT_EQ(counting->counter->bad_cookies(), 0u);
  size_t hit_functions = 0;
  for (const Target& target : resolution->targets()) {
    const testing::Hit hit =
        counting->counter->At(static_cast<uint32_t>(target.cookie));
    if (hit.cnt == 0) continue;
    ++hit_functions;
    EXPECT_EQ(hit.ip, target.addr) << target.name;
  }
  EXPECT_GT(hit_functions, 300u);
  printf("%zu functions with shuffled cookies, %zu of them hit\n",
         resolution->targets().size(), hit_functions);
}

TEST_F(ReadBackTest, BothCookiesOfAFunctionCount) {
  std::vector<Request> requests =
      testing::ParseRequestTexts({"syscall:getppid", "__x64_sys_getp*"});
  requests[0].set_cookie(1);
  requests[1].set_cookie(2);
  ResolveOptions options;
  options.cookie_conflicts = CookieConflicts::kSplitLinks;
  absl::StatusOr<Resolution> resolution =
      Resolve(requests, KernelFiles(), options);
  ASSERT_TRUE(resolution.ok()) << resolution.status();
  absl::StatusOr<Counting> counting =
      AttachCounter(*resolution, Calls::kThisProcess);
  ASSERT_TRUE(counting.ok()) << counting.status();
  EXPECT_EQ(counting->attachment.links().size(), 2u);
  EXPECT_TRUE(counting->attachment.ReadBack()->matches());
  TriggerGetppid(6);
  EXPECT_EQ(counting->counter->At(1).cnt, 6u);
  EXPECT_EQ(counting->counter->At(2).cnt, 6u);
}

TEST_F(ReadBackTest, PinnedLinksGoOnAndAreTakenOver) {
  const std::string dir = "/sys/fs/bpf/ksweep_test";
  const Resolution resolution = ResolveHere({"vfs_*", kGetppid});
  std::unique_ptr<Counter> counter =
      Counter::Load(Kind::kKprobeMulti, resolution.targets().size());
  ASSERT_NE(counter, nullptr);
  counter->OnlyThisProcess();
  AttachOptions options;
  options.max_per_link = 30;
  uint32_t slot = 0;
  {
    absl::StatusOr<Attachment> attachment =
        Attach(resolution, counter->program(), options);
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    const absl::Status pinned = attachment->Pin(dir);
    ASSERT_TRUE(pinned.ok()) << pinned;
    while (resolution.targets()[slot].name != kGetppid) ++slot;
  }
  TriggerGetppid(4);
  EXPECT_EQ(counter->At(slot).cnt, 4u) << "without the object";

  absl::StatusOr<Attachment> taken =
      Attachment::TakeOver(dir, resolution, options);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->links().size(), (resolution.targets().size() + 29) / 30);
  std::vector<uint32_t> slots(resolution.targets().size());
  std::iota(slots.begin(), slots.end(), 0);
  EXPECT_EQ(taken->targets(), slots);
  EXPECT_TRUE(taken->ReadBack()->matches()) << taken->ReadBack()->ToString();
  TriggerGetppid(3);
  EXPECT_EQ(counter->At(slot).cnt, 7u);

  ASSERT_TRUE(taken->Detach().ok());
  EXPECT_NE(access(dir.c_str(), F_OK), 0);
  TriggerGetppid(5);
  EXPECT_EQ(counter->At(slot).cnt, 7u) << "nothing after detach";
}

TEST_F(ReadBackTest, OnAnotherFileSystemNothingIsPinned) {
  const Resolution resolution = ResolveHere({kGetppid});
  absl::StatusOr<Counting> counting = AttachCounter(resolution, Calls::kAll);
  ASSERT_TRUE(counting.ok()) << counting.status();
  const absl::Status status = counting->attachment.Pin("/tmp/ksweep_no_bpffs");
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("BPF file system"));
  EXPECT_NE(access("/tmp/ksweep_no_bpffs", F_OK), 0);
}

}  // namespace
}  // namespace ksweep
