// Attaches through BPF trampolines for real: to many functions with one link,
// and to each with one of its own. Run by selftests/run in virtual machines.

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
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
using testing::KernelHasTracingMulti;
using testing::ResolveHere;
using testing::TriggerGetppid;

// What getppid(2) calls, and is in the kernel's BTF.
constexpr char kGetppid[] = "__do_sys_getppid";

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

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

TEST_F(TracingMultiTest, EveryFunctionAtReturn) {
  ExpectAllAccepted(Kind::kFexitMulti, {"*"}, 1);
}

TEST_F(TracingMultiTest, EveryFunctionAtEntryAndReturn) {
  ExpectAllAccepted(Kind::kFsessionMulti, {"*"}, 2);
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

  absl::StatusOr<testing::Counting> counting =
      testing::AttachCounter(resolution, testing::Calls::kAll);
  ASSERT_TRUE(counting.ok()) << counting.status();
  Counter& counter = *counting->counter;
  Attachment& attachment = counting->attachment;
  EXPECT_EQ(attachment.links().size(), 2u);
  ASSERT_EQ(system("ip link add name ks0 type dummy"), 0);
  EXPECT_EQ(counter.At(SlotOf(attachment, "dummy_setup")).cnt, 1u);
  EXPECT_EQ(counter.At(SlotOf(attachment, "veth_setup")).cnt, 0u);
  ASSERT_EQ(system("ip link add name ks1 type veth peer name ks2"), 0);
  EXPECT_EQ(counter.At(SlotOf(attachment, "dummy_setup")).cnt, 1u);
  EXPECT_GE(counter.At(SlotOf(attachment, "veth_setup")).cnt, 1u);
  EXPECT_GE(ExpectCookiesExact(attachment, counter), 4u);

  ASSERT_TRUE(attachment.Detach().ok());
  const uint64_t hits = counter.all_hits();
  ASSERT_EQ(system("ip link del ks0; ip link del ks1"), 0);
  EXPECT_EQ(counter.all_hits(), hits);
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
  absl::StatusOr<testing::Counting> counting =
      testing::AttachCounter(*resolution, testing::Calls::kThisProcess);
  ASSERT_TRUE(counting.ok()) << counting.status();
  Counter& counter = *counting->counter;
  ExpectCountedExactly(counter, 3, 1);
  EXPECT_EQ(counter.At(2).cnt, 0u);
  ASSERT_TRUE(counting->attachment.Detach().ok());
  const uint64_t hits = counter.all_hits();
  TriggerGetppid(1000);
  EXPECT_EQ(counter.all_hits(), hits) << "after the end";
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

// A program and a link for each function.
class PerFunctionTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    // fsession came with Linux 7.0, shortly before tracing_multi links.
    if (GetParam() != Kind::kFsession || KernelHasTracingMulti()) return;
    const Feature feature = Features::Running().Find(Kind::kFsession);
    EXPECT_EQ(feature.support, Support::kNo);
    GTEST_SKIP() << "this kernel has no fsession programs: " << feature.why;
  }
};

constexpr char kGetpid[] = "__do_sys_getpid";

// Cookies in another order than the functions are in.
Resolution ResolveWithCookies(Kind kind,
                              const std::vector<std::string>& names) {
  std::vector<Request> requests = testing::ParseRequestTexts(names);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].set_cookie(requests.size() - 1 - i);
  }
  ResolveOptions options;
  options.kinds = {kind};
  absl::StatusOr<Resolution> resolution =
      Resolve(requests, KernelFiles(), options);
  if (resolution.ok()) return *std::move(resolution);
  ADD_FAILURE() << resolution.status();
  return Resolution();
}

TEST_P(PerFunctionTest, CountedExactlyWithCookies) {
  const int descriptors = testing::OpenDescriptors();
  const Kind kind = GetParam();
  const Resolution resolution = ResolveWithCookies(
      kind, {kGetppid, kGetpid, "vfs_read", "vfs_write", "veth_setup"});
  ASSERT_EQ(resolution.targets().size(), 5u);
  absl::StatusOr<testing::Counting> counting =
      testing::AttachCounter(resolution, testing::Calls::kThisProcess);
  ASSERT_TRUE(counting.ok()) << counting.status();
  Counter& counter = *counting->counter;
  Attachment& attachment = counting->attachment;
  EXPECT_EQ(attachment.kind(), kind);
  EXPECT_EQ(attachment.links().size(), 5u);

  const uint64_t per_call = kind == Kind::kFsession ? 2 : 1;
  for (int i = 0; i < 7; ++i) syscall(SYS_getpid);
  TriggerGetppid(1000);
  EXPECT_EQ(counter.At(4).cnt, 1000 * per_call);
  EXPECT_EQ(counter.At(3).cnt, 7 * per_call);
  EXPECT_EQ(counter.all_hits(), 1007 * per_call);
  char byte = 0;
  const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(read(zero, &byte, 1), 1);
  close(zero);
  EXPECT_EQ(counter.At(2).cnt, 3 * per_call);
  counter.AllProcesses();
  ASSERT_EQ(system("ip link add name ks1 type veth peer name ks2"), 0);
  EXPECT_GE(counter.At(0).cnt, per_call) << "of a module";
  for (const Target& target : resolution.targets()) {
    const testing::Hit hit = counter.At(static_cast<uint32_t>(target.cookie));
    if (hit.cnt == 0) continue;
    EXPECT_EQ(hit.ip, target.addr) << target.name;
  }
  EXPECT_EQ(counter.bad_cookies(), 0u);

  ASSERT_TRUE(attachment.Detach().ok());
  const uint64_t hits = counter.all_hits();
  TriggerGetppid(1000);
  ASSERT_EQ(system("ip link del ks1"), 0);
  EXPECT_EQ(counter.all_hits(), hits) << "after the end";
  printf("%s", attachment.Report().ToString().c_str());
  counting = absl::CancelledError();
  EXPECT_EQ(testing::OpenDescriptors(), descriptors);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PerFunctionTest,
                         ::testing::Values(Kind::kFentry, Kind::kFexit,
                                           Kind::kFsession),
                         [](const ::testing::TestParamInfo<Kind>& info) {
                           return std::string(KindName(info.param));
                         });

// Of some `cnt` functions that are not called all the time.
Resolution ResolveSome(Kind kind, size_t cnt) {
  const Resolution all = ResolveFor({kind}, {"[t-v]*"});
  std::vector<std::string> names = {kGetppid};
  for (const Target& target : all.targets()) {
    if (names.size() == cnt) break;
    if (target.module.empty()) names.emplace_back(target.name);
  }
  EXPECT_EQ(names.size(), cnt);
  return ResolveFor({kind}, names);
}

// What the kernel has for itself and cannot give back. MemAvailable moves by
// more than a thousand programs take.
int64_t KernelKb() {
  std::ifstream meminfo("/proc/meminfo");
  std::string line;
  int64_t sum = 0;
  while (std::getline(meminfo, line)) {
    std::istringstream words(line);
    std::string name;
    int64_t kb = 0;
    words >> name >> kb;
    if (name == "SUnreclaim:" || name == "VmallocUsed:" || name == "Percpu:") {
      sum += kb;
    }
  }
  EXPECT_GT(sum, 0) << "of /proc/meminfo";
  return sum;
}

// Milliseconds and memory for a function.
struct Each {
  double load_ms = 0;
  double attach_ms = 0;  // loading included
  double detach_ms = 0;
  double kb = 0;
};

// Only the loading, which Attach() does together with the linking.
int64_t LoadOnly(const Resolution& resolution, const bpf_program* prog,
                 uint32_t threads) {
  std::atomic<size_t> next = 0;
  std::atomic<size_t> failed_cnt = 0;
  const auto work = [&] {
    const std::vector<Target>& targets = resolution.targets();
    for (size_t i = next++; i < targets.size(); i = next++) {
      LIBBPF_OPTS(bpf_prog_load_opts, opts);
      opts.expected_attach_type = bpf_program__expected_attach_type(prog);
      opts.attach_btf_id = targets[i].btf_id;
      const int fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "load_only", "GPL",
                                   bpf_program__insns(prog),
                                   bpf_program__insn_cnt(prog), &opts);
      if (fd < 0) ++failed_cnt;
      if (fd >= 0) close(fd);
    }
  };
  const int64_t start = NowNs();
  std::vector<std::thread> helpers;
  for (uint32_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  EXPECT_EQ(failed_cnt, 0u);
  return NowNs() - start;
}

Each MeasureEach(size_t cnt, uint32_t threads) {
  const Resolution resolution = ResolveSome(Kind::kFentry, cnt);
  std::unique_ptr<Counter> counter = Counter::Load(Kind::kFentry, resolution);
  if (counter == nullptr) return {};
  const auto each_ms = [cnt](int64_t ns) {
    return Seconds(ns) * 1000 / static_cast<double>(cnt);
  };
  Each each;
  AttachOptions options;
  options.threads = threads;
  options.raise_fd_limit = true;
  const int64_t kb_before = KernelKb();
  const int64_t start = NowNs();
  absl::StatusOr<Attachment> attachment =
      Attach(resolution, counter->program(), options);
  const int64_t attached = NowNs();
  EXPECT_TRUE(attachment.ok()) << attachment.status();
  if (!attachment.ok()) return {};
  each.attach_ms = each_ms(attached - start);
  each.kb =
      static_cast<double>(KernelKb() - kb_before) / static_cast<double>(cnt);
  EXPECT_EQ(attachment->links().size(), cnt);
  EXPECT_EQ(attachment->Report().on_threads.links, cnt);
  printf("%s", attachment->Report().ToString().c_str());
  const uint32_t slot = SlotOf(*attachment, kGetppid);
  const uint64_t calls_before = counter->At(slot).cnt;
  TriggerGetppid(1000);
  // Others may call it too, or interrupt it.
  EXPECT_GE(counter->At(slot).cnt - calls_before, 1000u);
  EXPECT_GT(ExpectCookiesExact(*attachment, *counter), 0u);

  const int64_t start_detach = NowNs();
  EXPECT_TRUE(attachment->Detach().ok());
  each.detach_ms = each_ms(NowNs() - start_detach);
  const uint64_t hits = counter->all_hits();
  TriggerGetppid(1000);
  EXPECT_EQ(counter->all_hits(), hits) << "after the end";
  // Last: what it leaves to be freed would be in the memory.
  each.load_ms = each_ms(LoadOnly(resolution, counter->program(), threads));
  return each;
}

void PrintEach(const char* what, size_t cnt, const Each& each) {
  const double k = 1000;
  printf(
      "fentry of %zu functions, %s, for 1000: loading alone %.2f s, loading "
      "and attaching %.1f s, detaching %.1f s, %.1f MB\n",
      cnt, what, each.load_ms * k / 1000, each.attach_ms * k / 1000,
      each.detach_ms * k / 1000, each.kb * k / 1024);
}

// The kernel waits at each, on Linux 6.12 16 ms to attach and 150 ms to detach:
// a thousand take three minutes, so that fewer are done unless told.
size_t FunctionCnt() {
  const char* text = getenv("KSWEEP_FENTRY_FUNCTIONS");
  if (text != nullptr) return std::strtoul(text, nullptr, 10);
  return KernelHasTracingMulti() ? 100 : 200;
}

// The waits are the whole cost, so that they decide whether threads help.
TEST(PerFunction, OneAfterTheOtherAgainstThreads) {
  const size_t cnt = FunctionCnt();
  const size_t single_cnt = std::min<size_t>(cnt, 50);
  // First, so that no memory of before is freed meanwhile.
  const Each threaded = MeasureEach(cnt, 16);
  const Each single = MeasureEach(single_cnt, 1);
  PrintEach("one after the other", single_cnt, single);
  PrintEach("with 16 threads", cnt, threaded);
  const auto say = [](const char* what, double before, double after,
                      const char* if_not) {
    const double times = before / after;
    printf("%s with 16 threads is %.1f times as fast%s\n", what, times,
           times < 1.5 ? if_not : "");
  };
  const char* waits = ": the kernel lets one wait after the other";
  say("loading alone", single.load_ms, threaded.load_ms, "");
  say("attaching", single.attach_ms, threaded.attach_ms, waits);
  say("detaching", single.detach_ms, threaded.detach_ms, waits);
  fflush(stdout);
}

// Programs of the kinds that the kernel has, and the reason for each other.
TEST(WithoutTracingMulti, KprobesTakeItsPlace) {
  if (KernelHasTracingMulti()) {
    GTEST_SKIP() << "this kernel has tracing_multi links";
  }
  if (!testing::KernelHas("CONFIG_FPROBE")) {
    GTEST_SKIP() << "this kernel is built without CONFIG_FPROBE";
  }
  const Kind kprobe_kinds[] = {Kind::kKprobeSession, Kind::kKprobeMulti};
  for (Kind kprobe_kind : kprobe_kinds) {
    if (Features::Running().Find(kprobe_kind).support != Support::kYes) {
      ADD_FAILURE() << KindName(kprobe_kind) << ": "
                    << Features::Running().Why(kprobe_kind);
      continue;
    }
    const Resolution resolution =
        ResolveFor({Kind::kFentryMulti, kprobe_kind}, {"vfs_*", kGetppid});
    absl::StatusOr<testing::Counting> counting =
        testing::AttachCounter(resolution, testing::Calls::kThisProcess);
    ASSERT_TRUE(counting.ok()) << counting.status();
    Counter& counter = *counting->counter;
    Attachment& attachment = counting->attachment;
    EXPECT_EQ(attachment.kind(), kprobe_kind);
    EXPECT_EQ(attachment.links().size(), 1u);
    EXPECT_EQ(attachment.targets().size(), resolution.targets().size());
    ExpectCountedExactly(counter, SlotOf(attachment, kGetppid),
                         kprobe_kind == Kind::kKprobeSession ? 2 : 1);
  }
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
