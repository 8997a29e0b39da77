// Modules that come and go while attached. The modules dummy and veth are in
// the guest as files, which the runner lists in /vm/modules.

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ksweep/module_watch.h"
#include "selftests/kernel/kernel_test_util.h"

namespace ksweep {
namespace {

using ::testing::Contains;
using testing::Counter;
using testing::TriggerGetppid;

constexpr char kDummy[] = "dummy";

std::string FileOfModule(const std::string& module) {
  std::ifstream list("/vm/modules");
  for (std::string path; list >> path;) {
    if (path.ends_with("/" + module + ".ko")) return path;
  }
  ADD_FAILURE() << module << ".ko is not in /vm/modules";
  return "";
}

// 0, or the errno.
int InsertModule(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const long result = syscall(SYS_finit_module, fd, "numdummies=0", 0);
  const int err = result == 0 ? 0 : errno;
  close(fd);
  return err;
}

int RemoveModule(const std::string& module) {
  const long result = syscall(SYS_delete_module, module.c_str(), O_NONBLOCK);
  return result == 0 ? 0 : errno;
}

size_t OpenFds() {
  DIR* dir = opendir("/proc/self/fd");
  size_t cnt = 0;
  while (readdir(dir) != nullptr) ++cnt;
  closedir(dir);
  return cnt;
}

// A line such as "VmRSS:     1234 kB", in kB.
long ReadKb(const char* path, const std::string& name) {
  std::ifstream in(path);
  for (std::string word; in >> word;) {
    if (word != name) continue;
    long kb = 0;
    in >> kb;
    return kb;
  }
  ADD_FAILURE() << name << " is not in " << path;
  return 0;
}

class UpdateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::KernelHas("CONFIG_FPROBE")) {
      GTEST_SKIP() << "this kernel is built without CONFIG_FPROBE";
    }
    path_ = FileOfModule(kDummy);
    ASSERT_THAT(RemoveModule(kDummy), ::testing::AnyOf(0, ENOENT));
    options_.missing = OnMissing::kReport;
  }

  void TearDown() override {
    attachment_ = Attachment();
    if (!path_.empty()) InsertModule(path_);
  }

  Resolution ResolveNow() {
    return testing::ResolveHere({"dummy:dummy_*", "vmlinux:__x64_sys_getppid"},
                                options_);
  }

  void AttachUpdatable(size_t max_slots) {
    counter_ = Counter::Load(Kind::kKprobeMulti, max_slots);
    ASSERT_NE(counter_, nullptr);
    counter_->OnlyThisProcess();
    AttachOptions options;
    options.updatable = true;
    absl::StatusOr<Attachment> attachment =
        Attach(ResolveNow(), counter_->program(), options);
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    attachment_ = *std::move(attachment);
  }

  // Loads it, and updates as a watcher does.
  void LoadAndUpdate() {
    ASSERT_EQ(InsertModule(path_), 0);
    const absl::StatusOr<ModuleChanges> changes = watch_.Poll();
    ASSERT_TRUE(changes.ok()) << changes.status();
    EXPECT_THAT(changes->loaded, Contains(kDummy));
    const absl::StatusOr<UpdateReport> report =
        attachment_.Update(ResolveNow());
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_GT(report->added, 0u);
    EXPECT_EQ(report->kept, 1u);
    EXPECT_EQ(report->syscalls, 1u);
  }

  // The slot that is `function` now.
  uint32_t SlotOf(std::string_view function) {
    for (uint32_t slot = 0; slot < attachment_.targets().size(); ++slot) {
      const uint32_t target = attachment_.targets()[slot];
      if (target != kNoTarget &&
          attachment_.resolution().targets()[target].name == function) {
        return slot;
      }
    }
    ADD_FAILURE() << function << " is not attached";
    return 0;
  }

  // A dummy device calls dummy_setup() once, in the process that makes it,
  // which is not this one.
  uint64_t SetupCalls() {
    const uint32_t slot = SlotOf("dummy_setup");
    const uint64_t before = counter_->At(slot).cnt;
    EXPECT_EQ(MakeDevice(), 0);
    return counter_->At(slot).cnt - before;
  }

  static int MakeDevice() {
    const int made = system("ip link add name ksu0 type dummy");
    const int removed = system("ip link del ksu0");
    return made + removed;
  }

  std::string path_;
  ResolveOptions options_;
  ModuleWatch watch_;
  std::unique_ptr<Counter> counter_;
  Attachment attachment_;
};

TEST_F(UpdateTest, AModuleLoadedLaterIsAttachedReleasedAndAttachedAgain) {
  AttachUpdatable(1000);
  ASSERT_TRUE(watch_.Poll().ok());
  EXPECT_EQ(attachment_.targets().size(), 1u);
  LoadAndUpdate();
  EXPECT_TRUE(attachment_.ReadBack()->matches());
  const uint32_t getppid = 0;
  TriggerGetppid(3);
  EXPECT_EQ(counter_->At(getppid).cnt, 3u);

  EXPECT_EQ(RemoveModule(kDummy), EAGAIN) << "a link holds it";
  const absl::StatusOr<UpdateReport> released = attachment_.Release(kDummy);
  ASSERT_TRUE(released.ok()) << released.status();
  EXPECT_EQ(released->links_closed, 1u);
  EXPECT_EQ(RemoveModule(kDummy), 0);
  TriggerGetppid(3);
  EXPECT_EQ(counter_->At(getppid).cnt, 6u) << "the core's link stays";

  const size_t slots_before = attachment_.targets().size();
  LoadAndUpdate();
  EXPECT_GT(attachment_.targets().size(), slots_before) << "new slots";
  EXPECT_TRUE(attachment_.ReadBack()->matches());
  ASSERT_TRUE(attachment_.Detach().ok());
  EXPECT_EQ(RemoveModule(kDummy), 0);
  TriggerGetppid(3);
  EXPECT_EQ(counter_->At(getppid).cnt, 6u) << "nothing after detach";
}

TEST_F(UpdateTest, HitsOfAModuleLoadedLater) {
  AttachUpdatable(1000);
  ASSERT_TRUE(watch_.Poll().ok());
  LoadAndUpdate();
  counter_->AllProcesses();
  EXPECT_EQ(SetupCalls(), 1u);
}

TEST_F(UpdateTest, FiftyRoundsLeakNothing) {
  constexpr int kRounds = 50;
  constexpr int kWarmUp = 10;
  AttachUpdatable(5000);
  ASSERT_TRUE(watch_.Poll().ok());
  size_t fds = 0;
  long rss_kb = 0, slab_kb = 0;
  for (int round = 0; round < kRounds; ++round) {
    LoadAndUpdate();
    ASSERT_FALSE(HasFailure()) << "round " << round;
    ASSERT_TRUE(attachment_.Release(kDummy).ok());
    ASSERT_EQ(RemoveModule(kDummy), 0) << "round " << round;
    ASSERT_TRUE(watch_.Poll().ok());
    malloc_trim(0);
    if (round == 0) fds = OpenFds();
    ASSERT_EQ(OpenFds(), fds) << "round " << round;
    if (round != kWarmUp) continue;
    rss_kb = ReadKb("/proc/self/status", "VmRSS:");
    slab_kb = ReadKb("/proc/meminfo", "Slab:");
  }
  const long rss_growth_kb = ReadKb("/proc/self/status", "VmRSS:") - rss_kb;
  const long slab_growth_kb = ReadKb("/proc/meminfo", "Slab:") - slab_kb;
  printf("%d rounds, the last %d grew: process %ld kB, kernel's slab %ld kB\n",
         kRounds, kRounds - kWarmUp - 1, rss_growth_kb, slab_growth_kb);
  // A resolution is some megabytes, a module's link some kilobytes.
  EXPECT_LT(rss_growth_kb, 2000);
  EXPECT_LT(slab_growth_kb, 4000);
}

}  // namespace
}  // namespace ksweep
