// What the kernel can attach, against what its configuration and its symbols
// say, and single kprobes for real.

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "count.skel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ksweep/features.h"
#include "ksweep/status.h"
#include "lib/attach/kinds/fd_budget.h"
#include "lib/attach/kinds/perf_kprobe.h"
#include "lib/attach/programs/choose_kind.h"
#include "selftests/kernel/kernel_test_util.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using testing::Counter;
using ::testing::HasSubstr;
using testing::Hit;
using testing::KernelHas;
using testing::OpenDescriptors;
using testing::TriggerGetppid;

// Functions of the core kernel by name; the last of several.
const std::map<std::string, uint64_t>& CoreFunctions() {
  static const auto* functions = [] {
    auto* found = new std::map<std::string, uint64_t>;
    std::ifstream kallsyms("/proc/kallsyms");
    for (std::string line; std::getline(kallsyms, line);) {
      std::istringstream words(line);
      std::string addr, type, name, module;
      words >> addr >> type >> name >> module;
      if (!module.empty() || (type != "T" && type != "t")) continue;
      (*found)[name] = std::stoull(addr, nullptr, 16);
    }
    return found;
  }();
  return *functions;
}

bool HasFunction(const std::string& name) {
  return CoreFunctions().count(name) != 0;
}

uint64_t AddressOf(const std::string& name) {
  const auto function = CoreFunctions().find(name);
  if (function != CoreFunctions().end()) return function->second;
  ADD_FAILURE() << "kallsyms has no " << name;
  return 0;
}

// What the kernel is made of, as seen from outside.
std::map<Kind, bool> ExpectedKinds() {
  const bool fprobe = KernelHas("CONFIG_FPROBE");
  const bool session = fprobe && HasFunction("bpf_session_is_return");
  const bool trampolines = KernelHas("CONFIG_DEBUG_INFO_BTF") &&
                           KernelHas("CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS");
  const bool fsession = trampolines && HasFunction("bpf_jit_supports_fsession");
  const bool multi = trampolines && HasFunction("bpf_tracing_multi_attach");
  const bool perf = KernelHas("CONFIG_KPROBE_EVENTS");
  return {
      {Kind::kKprobeMulti, fprobe},    {Kind::kKretprobeMulti, fprobe},
      {Kind::kKprobeSession, session}, {Kind::kKprobe, perf},
      {Kind::kKretprobe, perf},        {Kind::kFentry, trampolines},
      {Kind::kFexit, trampolines},     {Kind::kFsession, fsession},
      {Kind::kFentryMulti, multi},     {Kind::kFexitMulti, multi},
      {Kind::kFsessionMulti, multi},
  };
}

// Kinds that Debian's kernels lack, so that neither side goes wrong unseen.
struct Lacks {
  const char* release;
  std::set<Kind> kinds;
  uint32_t max_args;
};

const Lacks kLacks[] = {
    {"6.1.",
     {Kind::kKprobeMulti, Kind::kKretprobeMulti, Kind::kKprobeSession,
      Kind::kFsession, Kind::kFentryMulti, Kind::kFexitMulti,
      Kind::kFsessionMulti},
     6},
    {"6.12.",
     {Kind::kFsession, Kind::kFentryMulti, Kind::kFexitMulti,
      Kind::kFsessionMulti},
     12},
    {"7.3.", {}, 12},
};

const Lacks* LacksOfRunning() {
  utsname name;
  EXPECT_EQ(uname(&name), 0);
  for (const Lacks& lacks : kLacks) {
    if (std::string_view(name.release).starts_with(lacks.release)) {
      return &lacks;
    }
  }
  return nullptr;
}

TEST(Features, AreThoseOfTheKernel) {
  const int before = OpenDescriptors();
  Features& features = Features::Running();
  for (const auto& [kind, want] : ExpectedKinds()) {
    const absl::StatusOr<bool> has = features.Has(kind);
    ASSERT_TRUE(has.ok()) << has.status();
    EXPECT_EQ(*has, want) << KindName(kind) << ": " << features.Why(kind);
    EXPECT_TRUE(features.Find(kind).tried) << KindName(kind);
  }
  EXPECT_EQ(OpenDescriptors(), before);
  printf("%s", features.ToString().c_str());
}

TEST(Features, AreThoseOfTheDistribution) {
  const Lacks* lacks = LacksOfRunning();
  // Nothing else pins what the tests of single features skip for.
  ASSERT_NE(lacks, nullptr) << "what does this kernel lack? Add it to kLacks";
  Features& features = Features::Running();
  for (int i = 0; i < kKindCnt; ++i) {
    const Kind kind = static_cast<Kind>(i);
    EXPECT_EQ(*features.Has(kind), lacks->kinds.count(kind) == 0)
        << KindName(kind) << ": " << features.Why(kind);
  }
  EXPECT_EQ(*features.MaxTrampolineArgs(), lacks->max_args);
}

TEST(Features, SayWhatIsOff) {
  if (KernelHas("CONFIG_FPROBE")) {
    GTEST_SKIP() << "this kernel has CONFIG_FPROBE";
  }
  EXPECT_EQ(Features::Running().Why(Kind::kKprobeMulti),
            "CONFIG_FPROBE is off: the kernel answered EOPNOTSUPP");
}

// Runs `body` as nobody in a process of its own; 0 is well.
template <typename Body>
void ExpectAsNobody(const Body& body) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(100);
    _exit(body());
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state));
  EXPECT_EQ(WEXITSTATUS(state), 0);
}

TEST(Features, NotPermittedIsNotNo) {
  ExpectAsNobody([] {
    Features features(BpfSys::Kernel(), PerfSys::Kernel(), KernelFiles());
    for (int i = 0; i < kKindCnt; ++i) {
      const Kind kind = static_cast<Kind>(i);
      if (features.Find(kind).support != Support::kNotPermitted) return i + 1;
    }
    const bool hint = features.Why(Kind::kKprobeMulti)
                          .ends_with("by its BTF the kernel has it");
    return hint == KernelHas("CONFIG_FPROBE") ? 0 : 50;
  });
}

TEST(ChooseKind, TheBestThatTheKernelHas) {
  ResolveOptions options;
  options.kinds = {Kind::kKprobeMulti, Kind::kKprobe};
  const KindFit fit =
      FitOf(testing::ResolveHere({"vfs_read", "vfs_write"}, options));
  count_bpf* skeleton = count_bpf__open();
  ASSERT_NE(skeleton, nullptr);
  const absl::StatusOr<KindChoice> choice =
      ChooseKind(ShapeOf(*skeleton->progs.count), &fit, Features::Running());
  count_bpf__destroy(skeleton);
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->kind,
            KernelHas("CONFIG_FPROBE") ? Kind::kKprobeMulti : Kind::kKprobe);
  EXPECT_THAT(choice->why, HasSubstr("which 2 of 2 targets fit"));
  printf("%s\n", choice->why.c_str());
}

// The counting program, loaded for single kprobes.
class SingleCounter {
 public:
  explicit SingleCounter(size_t slots) : skeleton_(count_bpf__open()) {
    bpf_program* prog = skeleton_->progs.count;
    EXPECT_EQ(bpf_program__set_type(prog, BPF_PROG_TYPE_UNSPEC), 0);
    EXPECT_EQ(bpf_program__set_type(prog, BPF_PROG_TYPE_KPROBE), 0);
    EXPECT_EQ(bpf_program__set_expected_attach_type(prog, bpf_attach_type{}),
              0);
    bpf_map__set_max_entries(skeleton_->maps.hits,
                             static_cast<uint32_t>(slots));
    EXPECT_EQ(count_bpf__load(skeleton_), 0);
    skeleton_->bss->only_pid = static_cast<uint32_t>(getpid());
  }
  ~SingleCounter() { count_bpf__destroy(skeleton_); }

  int prog_fd() const { return bpf_program__fd(skeleton_->progs.count); }
  uint64_t all_hits() const { return skeleton_->bss->all_hits; }
  uint64_t bad_cookies() const { return skeleton_->bss->bad_cookies; }

  Hit At(uint32_t slot) const {
    Hit hit;
    EXPECT_EQ(
        bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.hits), &slot, &hit), 0);
    return hit;
  }

 private:
  count_bpf* skeleton_;
};

KprobePmu PmuHere() {
  const absl::StatusOr<KprobePmu> pmu = ReadKprobePmu(KernelFiles());
  EXPECT_TRUE(pmu.ok()) << pmu.status();
  return pmu.ok() ? *pmu : KprobePmu();
}

// A kernel that has no links for perf events, made of one that has.
class WithoutPerfLinks : public BpfSys {
 public:
  int Bpf(int cmd, void* attr, size_t size) override {
    if (cmd == kBpfLinkCreate) return -EINVAL;
    return BpfSys::Kernel().Bpf(cmd, attr, size);
  }
};

class PerfKprobeTest : public ::testing::Test {
 protected:
  PerfKprobeTest() : kprobes_(BpfSys::Kernel(), PerfSys::Kernel(), PmuHere()) {}

  PerfKprobeCall CallFor(const std::string& name, uint32_t cookie) {
    PerfKprobeCall call;
    call.prog_fd = counter_.prog_fd();
    call.name = CoreFunctions().find(name)->first;
    call.addr = AddressOf(name);
    call.cookie = cookie;
    return call;
  }

  // Attached, it counts every call; detached, none.
  void ExpectCounted(PerfKprobes& kprobes, const PerfKprobeCall& call) {
    const int before = OpenDescriptors();
    absl::StatusOr<Link> link = kprobes.Attach(call);
    ASSERT_TRUE(link.ok()) << link.status();
    EXPECT_EQ(OpenDescriptors(), before + static_cast<int>(kFdsPerPerfKprobe));
    TriggerGetppid(1000);
    const Hit hit = counter_.At(static_cast<uint32_t>(call.cookie));
    EXPECT_EQ(hit.cnt, 1000u);
    EXPECT_EQ(hit.ip, AddressOf(std::string(call.name)));
    EXPECT_EQ(counter_.all_hits(), 1000u);
    EXPECT_EQ(counter_.bad_cookies(), 0u);
    ASSERT_TRUE(link->Detach().ok());
    TriggerGetppid(1000);
    EXPECT_EQ(counter_.all_hits(), 1000u);
    EXPECT_EQ(OpenDescriptors(), before);
  }

  void ExpectRefused(const PerfKprobeCall& call, int err, bool about_function) {
    const int before = OpenDescriptors();
    const absl::StatusOr<Link> link = kprobes_.Attach(call);
    ASSERT_FALSE(link.ok()) << call.name;
    EXPECT_EQ(ErrnoOf(link.status()), err) << link.status();
    EXPECT_EQ(IsAboutFunction(link.status()), about_function) << link.status();
    EXPECT_EQ(OpenDescriptors(), before);
  }

  SingleCounter counter_{64};
  PerfKprobes kprobes_;
};

TEST_F(PerfKprobeTest, CountsEntries) {
  ExpectCounted(kprobes_, CallFor("__x64_sys_getppid", 3));
  EXPECT_FALSE(kprobes_.without_links());
}

TEST_F(PerfKprobeTest, CountsReturns) {
  PerfKprobeCall call = CallFor("__x64_sys_getppid", 3);
  call.kind = Kind::kKretprobe;
  ExpectCounted(kprobes_, call);
}

TEST_F(PerfKprobeTest, CountsByName) {
  PerfKprobeCall call = CallFor("__x64_sys_getppid", 3);
  call.addr = 0;
  ExpectCounted(kprobes_, call);
}

TEST_F(PerfKprobeTest, CountsThroughTheEventItself) {
  WithoutPerfLinks old;
  PerfKprobes kprobes(old, PerfSys::Kernel(), PmuHere());
  ExpectCounted(kprobes, CallFor("__x64_sys_getppid", 0));
  EXPECT_TRUE(kprobes.without_links());
}

TEST_F(PerfKprobeTest, RefusedFunctions) {
  PerfKprobeCall call = CallFor("exc_int3", 1);
  ExpectRefused(call, EINVAL, true);
  call = CallFor("__x64_sys_getppid", 1);
  call.addr += 1;
  ExpectRefused(call, EILSEQ, true);
  call.addr = 8;
  ExpectRefused(call, ENOENT, true);
  // Several functions of that name.
  call.addr = 0;
  call.name = "t_next";
  ExpectRefused(call, EADDRNOTAVAIL, true);
  call.name = "no_such_function_q";
  ExpectRefused(call, ENOENT, true);
}

TEST_F(PerfKprobeTest, AProgramOfKprobeMultiIsRefused) {
  std::unique_ptr<Counter> multi = Counter::Load(Kind::kKprobeMulti, 1);
  ASSERT_NE(multi, nullptr);
  PerfKprobeCall call = CallFor("__x64_sys_getppid", 0);
  call.prog_fd = bpf_program__fd(multi->program());
  ExpectRefused(call, EINVAL, false);
  EXPECT_FALSE(kprobes_.without_links());
}

TEST_F(PerfKprobeTest, WithoutPrivilege) {
  const PerfKprobeCall call = CallFor("__x64_sys_getppid", 0);
  ExpectAsNobody([this, &call] {
    const absl::StatusOr<Link> link = kprobes_.Attach(call);
    return link.status().code() == absl::StatusCode::kPermissionDenied ? 0 : 1;
  });
}

// A descriptor for each of 50, and every cookie at its function.
TEST_F(PerfKprobeTest, ManyFunctions) {
  ResolveOptions options;
  options.kinds = {Kind::kKprobe};
  const Resolution resolution =
      testing::ResolveHere({"vfs_*", "syscall:getppid"}, options);
  constexpr size_t kCnt = 50;
  ASSERT_GT(resolution.targets().size(), kCnt);
  const int before = OpenDescriptors();
  ASSERT_TRUE(
      ReserveFds(PerfSys::Kernel(), kCnt, "kprobe", RaiseLimit::kNo).ok());
  std::vector<Link> links;
  for (uint32_t slot = 0; slot < kCnt; ++slot) {
    const Target& target = resolution.targets()[slot];
    PerfKprobeCall call;
    call.prog_fd = counter_.prog_fd();
    call.addr = target.addr;
    call.name = target.name;
    call.cookie = slot;
    absl::StatusOr<Link> link = kprobes_.Attach(call);
    ASSERT_TRUE(link.ok()) << link.status();
    links.push_back(*std::move(link));
  }
  EXPECT_EQ(OpenDescriptors(), before + static_cast<int>(kCnt));
  std::ifstream("/proc/version").get();
  size_t hit_functions = 0;
  for (uint32_t slot = 0; slot < kCnt; ++slot) {
    const Hit hit = counter_.At(slot);
    if (hit.cnt == 0) continue;
    ++hit_functions;
    EXPECT_EQ(hit.ip, resolution.targets()[slot].addr);
  }
  EXPECT_GT(hit_functions, 2u);
  EXPECT_EQ(counter_.bad_cookies(), 0u);
  links.clear();
  EXPECT_EQ(OpenDescriptors(), before);
}

}  // namespace
}  // namespace ksweep
