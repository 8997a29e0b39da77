// Attaches through BPF trampolines for real: to many functions with one link,
// and to each with one of its own. Run by selftests/run in virtual machines.

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ksweep/attach.h"
#include "ksweep/features.h"
#include "ksweep/status.h"
#include "lib/base/clock.h"
#include "selftests/kernel/kernel_test_util.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using testing::Counter;
using ::testing::HasSubstr;
using testing::ResolveHere;
using testing::TriggerGetppid;

// What getppid(2) calls, and is in the kernel's BTF.
constexpr char kGetppid[] = "__do_sys_getppid";

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

// From the kernel's BTF, where the structure is only if the link is compiled
// in.
bool KernelHasTracingMulti() {
  btf* kernel_btf = btf__load_vmlinux_btf();
  EXPECT_NE(kernel_btf, nullptr);
  const bool has = btf__find_by_name_kind(kernel_btf, "bpf_tracing_multi_link",
                                          BTF_KIND_STRUCT) > 0;
  btf__free(kernel_btf);
  return has;
}

Resolution ResolveFor(KindSet kinds, const std::vector<std::string>& requests) {
  ResolveOptions options;
  options.kinds = kinds;
  return ResolveHere(requests, options);
}

uint32_t SlotOf(const Attachment& attachment, std::string_view name) {
  const std::vector<Target>& targets = attachment.resolution().targets();
  for (uint32_t slot = 0; slot < attachment.targets().size(); ++slot) {
    const Target& target = targets[attachment.targets()[slot]];
    if (target.name == name) return slot;
    for (std::string_view alias : target.aliases) {
      if (alias == name) return slot;
    }
  }
  ADD_FAILURE() << name << " is not attached";
  return 0;
}

// Hits that the kernel left out because the program was running on that
// processor already, in a task that was interrupted.
uint64_t MissesOf(const Counter& counter) {
  bpf_prog_info info = {};
  __u32 bytes = sizeof(info);
  EXPECT_EQ(
      bpf_obj_get_info_by_fd(bpf_program__fd(counter.program()), &info, &bytes),
      0);
  return info.recursion_misses;
}

// A thousand calls have to be `per_call` thousand hits, unless some were
// missed, which is tried again.
void ExpectCountedExactly(const Counter& counter, uint32_t slot,
                          uint64_t per_call) {
  for (int round = 0; round < 20; ++round) {
    const uint64_t missed = MissesOf(counter);
    const uint64_t before = counter.At(slot).cnt;
    TriggerGetppid(1000);
    const uint64_t counted = counter.At(slot).cnt - before;
    if (MissesOf(counter) != missed) {
      EXPECT_LE(counted, 1000 * per_call);
      continue;
    }
    EXPECT_EQ(counted, 1000 * per_call);
    return;
  }
  ADD_FAILURE() << "hits were missed in every round";
}

// Every hit has brought the cookie of the function it came from.
size_t ExpectCookiesExact(const Attachment& attachment,
                          const Counter& counter) {
  size_t hit_cnt = 0;
  for (uint32_t slot = 0; slot < attachment.targets().size(); ++slot) {
    const testing::Hit hit = counter.At(slot);
    if (hit.cnt == 0) continue;
    ++hit_cnt;
    const Target& target =
        attachment.resolution().targets()[attachment.targets()[slot]];
    EXPECT_EQ(hit.ip, target.addr) << target.name;
  }
  EXPECT_EQ(counter.bad_cookies(), 0u);
  return hit_cnt;
}

size_t CountOwners(const Resolution& resolution) {
  std::set<std::string_view> owners;
  for (const Target& target : resolution.targets()) {
    owners.insert(target.module);
  }
  return owners.size();
}

class TracingMultiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (KernelHasTracingMulti()) return;
    GTEST_SKIP() << "this kernel has no tracing_multi links";
  }
};

// At the first try, with one link for each BTF object.
void ExpectAllAccepted(Kind kind, const std::vector<std::string>& requests,
                       uint64_t per_call) {
  const int descriptors = testing::OpenDescriptors();
  const Resolution resolution = ResolveFor({kind}, requests);
  std::unique_ptr<Counter> counter =
      Counter::Load(kind, resolution.targets().size());
  ASSERT_NE(counter, nullptr);
  size_t tries = 0;
  AttachOptions options;
  options.progress = [&tries](uint64_t, uint64_t) { return ++tries > 0; };
  const int64_t start = NowNs();
  absl::StatusOr<Attachment> attachment =
      Attach(resolution, counter->program(), options);
  const int64_t attached = NowNs();
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(attachment->targets().size(), resolution.targets().size());
  EXPECT_EQ(attachment->links().size(), CountOwners(resolution));
  EXPECT_EQ(tries, attachment->links().size());

  ExpectCountedExactly(*counter, SlotOf(*attachment, kGetppid), per_call);
  ASSERT_EQ(system("ls /proc > /dev/null; sleep 0.2"), 0);
  const int64_t start_detach = NowNs();
  ASSERT_TRUE(attachment->Detach().ok());
  const int64_t detached = NowNs();
  const uint64_t hits = counter->all_hits();
  TriggerGetppid(1000);
  EXPECT_EQ(counter->all_hits(), hits) << "after the end";

  std::map<Reason, size_t> reasons;
  for (const Omission& omission : resolution.omissions()) {
    ++reasons[omission.reason];
  }
  printf(
      "%s: %zu functions in %zu links, attached in %.1f s, detached in "
      "%.1f s, %zu were hit; left out %zu:",
      std::string(KindName(kind)).c_str(), resolution.targets().size(),
      CountOwners(resolution), Seconds(attached - start),
      Seconds(detached - start_detach),
      ExpectCookiesExact(*attachment, *counter), resolution.omissions().size());
  for (const auto& [reason, cnt] : reasons) {
    printf(" %s %zu", std::string(ReasonName(reason)).c_str(), cnt);
  }
  printf("\n");
  fflush(stdout);
  counter.reset();
  EXPECT_EQ(testing::OpenDescriptors(), descriptors);
}

TEST_F(TracingMultiTest, EveryFunctionOfTheKernelAndItsModules) {
  ExpectAllAccepted(Kind::kFentryMulti, {"*"}, 1);
}

// Everything again takes as long again, so a part.
TEST_F(TracingMultiTest, AtReturn) {
  ExpectAllAccepted(Kind::kFexitMulti, {"[t-v]*", "veth:*", kGetppid}, 1);
}

TEST_F(TracingMultiTest, AtEntryAndReturn) {
  ExpectAllAccepted(Kind::kFsessionMulti, {"[t-v]*", "veth:*", kGetppid}, 2);
}

// Both modules number their own types from the same id on.
TEST_F(TracingMultiTest, ModulesAreKeptApart) {
  const Resolution resolution =
      ResolveFor({Kind::kFentryMulti}, {"dummy:*", "veth:*"});
  std::map<uint32_t, std::set<std::string_view>> owners_of_id;
  for (const Target& target : resolution.targets()) {
    owners_of_id[target.btf_id].insert(target.module);
  }
  size_t shared_cnt = 0;
  for (const auto& [id, owners] : owners_of_id) shared_cnt += owners.size() - 1;
  printf("%zu functions, %zu ids in both modules\n",
         resolution.targets().size(), shared_cnt);
  EXPECT_GT(resolution.targets().size(), 20u);

  std::unique_ptr<Counter> counter =
      Counter::Load(Kind::kFentryMulti, resolution.targets().size());
  ASSERT_NE(counter, nullptr);
  absl::StatusOr<Attachment> attachment =
      Attach(resolution, counter->program());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(attachment->links().size(), 2u);
  ASSERT_EQ(system("ip link add name ks0 type dummy"), 0);
  EXPECT_EQ(counter->At(SlotOf(*attachment, "dummy_setup")).cnt, 1u);
  EXPECT_EQ(counter->At(SlotOf(*attachment, "veth_setup")).cnt, 0u);
  ASSERT_EQ(system("ip link add name ks1 type veth peer name ks2"), 0);
  EXPECT_EQ(counter->At(SlotOf(*attachment, "dummy_setup")).cnt, 1u);
  EXPECT_GE(counter->At(SlotOf(*attachment, "veth_setup")).cnt, 1u);
  EXPECT_GE(ExpectCookiesExact(*attachment, *counter), 4u);

  ASSERT_TRUE(attachment->Detach().ok());
  const uint64_t hits = counter->all_hits();
  ASSERT_EQ(system("ip link del ks0; ip link del ks1"), 0);
  EXPECT_EQ(counter->all_hits(), hits);
}

TEST_F(TracingMultiTest, ShuffledCookies) {
  std::vector<Request> requests = testing::ParseRequestTexts(
      {kGetppid, "__do_sys_getpid", "vfs_read", "vfs_write"});
  for (size_t i = 0; i < requests.size(); ++i) requests[i].set_cookie(3 - i);
  ResolveOptions options;
  options.kinds = {Kind::kFentryMulti};
  absl::StatusOr<Resolution> resolution =
      Resolve(requests, KernelFiles(), options);
  ASSERT_TRUE(resolution.ok()) << resolution.status();
  std::unique_ptr<Counter> counter = Counter::Load(Kind::kFentryMulti, 4);
  ASSERT_NE(counter, nullptr);
  counter->OnlyThisProcess();
  absl::StatusOr<Attachment> attachment =
      Attach(*resolution, counter->program());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  ExpectCountedExactly(*counter, 3, 1);
  EXPECT_EQ(counter->At(2).cnt, 0u);
}

// What has no BTF, or not the right one, through kprobe.multi.
TEST_F(TracingMultiTest, SplitOverKinds) {
  const KindSet kinds = {Kind::kFentryMulti, Kind::kKprobeMulti};
  const Resolution resolution = ResolveFor(kinds, {"t*", kGetppid});
  const size_t cnt = resolution.targets().size();
  std::unique_ptr<Counter> trampoline = Counter::Load(Kind::kFentryMulti, cnt);
  std::unique_ptr<Counter> kprobe = Counter::Load(Kind::kKprobeMulti, cnt);
  ASSERT_TRUE(trampoline != nullptr && kprobe != nullptr);
  trampoline->OnlyThisProcess();
  kprobe->OnlyThisProcess();
  const KindProgram programs[] = {
      {Kind::kFentryMulti, trampoline->program()},
      {Kind::kKprobeMulti, kprobe->program()},
  };
  absl::StatusOr<Attachment> attachment = Attach(resolution, programs);
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  const AttachReport report = attachment->Report();
  EXPECT_EQ(report.attached, cnt);
  ASSERT_EQ(report.kinds.size(), 2u);
  EXPECT_GT(report.kinds[0].attached, report.kinds[1].attached);
  EXPECT_GT(report.kinds[1].attached, 0u);
  printf("%s", report.ToString().c_str());
  ExpectCountedExactly(*trampoline, SlotOf(*attachment, kGetppid), 1);
  EXPECT_EQ(kprobe->At(SlotOf(*attachment, kGetppid)).cnt, 0u);
}

TEST_F(TracingMultiTest, TheSameProgramTwice) {
  const Resolution resolution = ResolveFor({Kind::kFentryMulti}, {"vfs_*"});
  std::unique_ptr<Counter> counter =
      Counter::Load(Kind::kFentryMulti, resolution.targets().size());
  ASSERT_NE(counter, nullptr);
  absl::StatusOr<Attachment> first = Attach(resolution, counter->program());
  ASSERT_TRUE(first.ok()) << first.status();
  absl::StatusOr<Attachment> second = Attach(resolution, counter->program());
  EXPECT_EQ(ErrnoOf(second.status()), EBUSY) << second.status();
  printf("%s\n", std::string(second.status().message()).c_str());
}

TEST(WithoutTracingMulti, IsSaidPlainly) {
  if (KernelHasTracingMulti()) {
    GTEST_SKIP() << "this kernel has tracing_multi links";
  }
  const Feature feature = Features::Running().Find(Kind::kFentryMulti);
  EXPECT_EQ(feature.support, Support::kNo);
  EXPECT_THAT(feature.why, HasSubstr("Linux 7.2"));
  printf("fentry.multi: %s\n", feature.why.c_str());
}

}  // namespace
}  // namespace ksweep

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (getenv("KSWEEP_VM") == nullptr) {
    fprintf(stderr,
            "skipped: these tests attach to every function of the kernel; run "
            "them in a virtual machine with selftests/run\n");
    return 77;
  }
  return RUN_ALL_TESTS();
}
