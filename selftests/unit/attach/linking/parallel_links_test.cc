#include "lib/attach/linking/parallel_links.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

#include "ksweep/attachment.h"
#include "selftests/testing/fake_bpf.h"

namespace ksweep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<Link> NewLink() {
  return Link(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

// A kernel whose calls take ten nanoseconds each behind one lock. The clock
// moves only in a call, which lasts until its end was read.
class BehindALock {
 public:
  absl::StatusOr<Link> Make() {
    turn_.lock();
    is_my_turn_ = true;
    now_ += 10;
    return NewLink();
  }

  int64_t Now() {
    if (!is_my_turn_) return now_;
    const int64_t now = now_;
    is_my_turn_ = false;
    turn_.unlock();
    return now;
  }

 private:
  static inline thread_local bool is_my_turn_ = false;
  std::mutex turn_;
  std::atomic<int64_t> now_ = 0;
};

// One whose calls of `threads` threads take ten nanoseconds together.
class SideBySide {
 public:
  explicit SideBySide(size_t threads) : threads_(threads) {}

  absl::StatusOr<Link> Make() {
    std::unique_lock<std::mutex> lock(mutex_);
    const size_t round = round_;
    if (++waiting_ == threads_) {
      waiting_ = 0;
      ++round_;
      now_ += 10;
      all_here_.notify_all();
    }
    all_here_.wait(lock, [&] { return round_ != round; });
    return NewLink();
  }

  int64_t Now() const { return now_; }

 private:
  const size_t threads_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  size_t waiting_ = 0;
  size_t round_ = 0;
  std::atomic<int64_t> now_ = 0;
};

template <typename Kernel>
ThreadReport MakeAll(Kernel& kernel, size_t cnt, uint32_t threads) {
  const size_t fds = CountOpenFds();
  ThreadReport report;
  {
    ParallelLinks links(
        cnt, threads, [&](size_t) { return kernel.Make(); },
        [&] { return kernel.Now(); });
    for (size_t i = 0; i < cnt; ++i) EXPECT_TRUE(links.Take().ok());
    report = links.Report();
  }
  EXPECT_EQ(CountOpenFds(), fds);
  EXPECT_EQ(report.links, cnt);
  return report;
}

std::string TextOf(const ThreadReport& report) {
  AttachReport whole;
  whole.on_threads = report;
  return whole.ToString();
}

TEST(ParallelLinks, CallsBehindALockAreTold) {
  BehindALock kernel;
  const ThreadReport report = MakeAll(kernel, 32, 4);
  EXPECT_EQ(report.threads, 4u);
  EXPECT_EQ(report.wall_ns, 320);
  EXPECT_EQ(report.fastest_ns, 10);
  EXPECT_GE(report.sum_ns, 320);
  EXPECT_EQ(report.Gain(), 1);
  EXPECT_TRUE(report.Serialized());
  EXPECT_THAT(TextOf(report),
              HasSubstr("4 threads made 32 links in 0.0 ms, 0.00 ms each; the "
                        "fastest took 0.00 ms: the kernel lets one wait after "
                        "the other, threads do not help\n"));
}

TEST(ParallelLinks, CallsSideBySide) {
  SideBySide kernel(4);
  const ThreadReport report = MakeAll(kernel, 32, 4);
  EXPECT_EQ(report.threads, 4u);
  EXPECT_EQ(report.wall_ns, 80);
  EXPECT_EQ(report.sum_ns, 320);
  EXPECT_EQ(report.fastest_ns, 10);
  EXPECT_EQ(report.Gain(), 4);
  EXPECT_FALSE(report.Serialized());
  EXPECT_THAT(TextOf(report), HasSubstr("4 threads made 32 links"));
  EXPECT_THAT(TextOf(report), Not(HasSubstr("do not help")));
}

// A refusal comes before the wait, so it says nothing of how long that is.
TEST(ParallelLinks, RefusedCallsAreNotTheFastest) {
  SideBySide kernel(4);
  ParallelLinks links(
      33, 4,
      [&](size_t i) -> absl::StatusOr<Link> {
        if (i == 32) return absl::InvalidArgumentError("refused");
        return kernel.Make();
      },
      [&] { return kernel.Now(); });
  for (size_t i = 0; i < 33; ++i) EXPECT_EQ(links.Take().ok(), i != 32);
  EXPECT_EQ(links.Report().fastest_ns, 10);
  EXPECT_FALSE(links.Report().Serialized());
}

TEST(ParallelLinks, OneThreadSaysNothing) {
  BehindALock kernel;
  const ThreadReport report = MakeAll(kernel, 20, 1);
  EXPECT_EQ(report.threads, 1u);
  EXPECT_EQ(report.Gain(), 1);
  EXPECT_FALSE(report.Serialized());
  EXPECT_THAT(TextOf(report), Not(HasSubstr("thread")));
}

TEST(ParallelLinks, TooFewLinksToTell) {
  BehindALock kernel;
  EXPECT_FALSE(MakeAll(kernel, 15, 4).Serialized());
}

TEST(ThreadReport, Added) {
  ThreadReport sum;
  AddReport({4, 10, 100, 300, 20}, &sum);
  AddReport({2, 5, 50, 90, 15}, &sum);
  AddReport({8, 0, 0, 0, 0}, &sum);
  EXPECT_EQ(sum.threads, 4u);
  EXPECT_EQ(sum.links, 15u);
  EXPECT_EQ(sum.wall_ns, 150);
  EXPECT_EQ(sum.sum_ns, 390);
  EXPECT_EQ(sum.fastest_ns, 15);
  EXPECT_EQ(sum.Gain(), 1.5);
  EXPECT_EQ(ThreadReport().Gain(), 0);
}

}  // namespace
}  // namespace ksweep
