// Attaches for real. Run by selftests/run in virtual machines; which features
// a kernel has to have is read from its configuration.

#include <bpf/bpf.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ksweep/status.h"
#include "selftests/kernel/kernel_test_util.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using testing::AttachCounter;
using testing::Calls;
using testing::Counter;
using testing::Counting;
using ::testing::HasSubstr;
using testing::ResolveHere;
using testing::TriggerGetppid;

// The slot of the target called `name`; fails the test if there is none.
uint32_t SlotOf(const Resolution& resolution, std::string_view name) {
  for (uint32_t i = 0; i < resolution.targets().size(); ++i) {
    const Target& target = resolution.targets()[i];
    if (target.name == name) return i;
    for (std::string_view alias : target.aliases) {
      if (alias == name) return i;
    }
  }
  ADD_FAILURE() << name << " is no target";
  return 0;
}

class AttachTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::KernelHas("CONFIG_FPROBE")) return;
    GTEST_SKIP() << "this kernel is built without CONFIG_FPROBE";
  }
};

// Triggers a thousand calls at a time until nothing is missed meanwhile: a hit
// from an interrupt that comes while the program runs is skipped by the kernel.
// Every thousand has to be counted all the same. Returns the count at the end.
uint64_t CountUndisturbed(const Attachment& attachment, const Counter& counter,
                          uint32_t slot) {
  constexpr int kRounds = 100;
  uint64_t counted = counter.At(slot).cnt;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t missed = attachment.ReadStats()->missed;
    TriggerGetppid(1000);
    counted += 1000;
    EXPECT_EQ(counter.At(slot).cnt, counted);
    if (attachment.ReadStats()->missed == missed) return counted;
  }
  ADD_FAILURE() << "hits were missed in each of " << kRounds << " rounds";
  return counted;
}

void ExpectGetppidCounted(Kind kind) {
  ResolveOptions options;
  options.kinds = {kind};
  const Resolution resolution = ResolveHere({"*"}, options);
  ASSERT_GT(resolution.targets().size(), 30000u);
  absl::StatusOr<Counting> counting =
      AttachCounter(resolution, Calls::kThisProcess);
  ASSERT_TRUE(counting.ok()) << counting.status();
  const Counter& counter = *counting->counter;
  Attachment& attachment = counting->attachment;
  EXPECT_EQ(attachment.links().size(), 1u);
  EXPECT_EQ(attachment.syscalls(), 1u);
  EXPECT_EQ(attachment.targets().size(), resolution.targets().size());

  const uint32_t slot = SlotOf(resolution, "__x64_sys_getppid");
  EXPECT_EQ(attachment.ReadStats()->cnt, resolution.targets().size());
  const uint64_t counted = CountUndisturbed(attachment, counter, slot);

  ASSERT_TRUE(attachment.Detach().ok());
  const uint64_t after = counter.all_hits();
  TriggerGetppid(1000);
  EXPECT_EQ(counter.all_hits(), after);
  EXPECT_EQ(counter.At(slot).cnt, counted);
  printf("%s: %zu functions, %zu left out\n",
         std::string(KindName(kind)).c_str(), resolution.targets().size(),
         resolution.omissions().size());
}

TEST_F(AttachTest, EveryFunctionOfTheKernel) {
  ExpectGetppidCounted(Kind::kKprobeMulti);
}

TEST_F(AttachTest, EveryFunctionOfTheKernelAtReturn) {
  ExpectGetppidCounted(Kind::kKretprobeMulti);
}

// The plain list is what the kernel offers; what ksweep takes is counted
// against it, function by function.
TEST_F(AttachTest, TargetsAreTheFilterListLessTheDenied) {
  const Resolution resolution = ResolveHere({"*"});
  std::map<std::pair<std::string, std::string>, int> listed;
  size_t listed_cnt = 0;
  for (const testing::ListedFunc& func : testing::ListedFuncs()) {
    std::string module = func.module;
    if (!module.empty()) module = module.substr(1, module.size() - 2);
    ++listed[{func.name, module}];
    ++listed_cnt;
  }
  EXPECT_EQ(resolution.targets().size(), listed_cnt);
  EXPECT_TRUE(resolution.stats().unjoined.empty());
  for (const Target& target : resolution.targets()) {
    // The list may call it by another of its names.
    std::vector<std::string_view> names(target.aliases.begin(),
                                        target.aliases.end());
    names.push_back(target.name);
    bool found = false;
    for (std::string_view name : names) {
      auto entry = listed.find({std::string(name), std::string(target.module)});
      if (entry == listed.end() || entry->second == 0) continue;
      --entry->second;
      found = true;
      break;
    }
    EXPECT_TRUE(found) << target.name << " [" << target.module << "]";
  }
  for (const auto& [func, cnt] : listed) EXPECT_EQ(cnt, 0) << func.first;
  for (const Omission& omission : resolution.omissions()) {
    EXPECT_THAT(
        std::string(ReasonName(omission.reason)),
        ::testing::AnyOf("NotTraceable", "InitSection", "DefaultDenied"))
        << omission.name;
  }
}

// Every hit has to bring the cookie of the function it comes from.
TEST_F(AttachTest, CookiesBelongToTheirFunctions) {
  const Resolution resolution = ResolveHere({"*"});
  absl::StatusOr<Counting> counting = AttachCounter(resolution, Calls::kAll);
  ASSERT_TRUE(counting.ok()) << counting.status();
  TriggerGetppid(10);
  ASSERT_EQ(system("ls /proc > /dev/null; sleep 0.2; dd if=/dev/zero "
                   "of=/tmp/x bs=4k count=50 2> /dev/null"),
            0);
  ASSERT_TRUE(counting->attachment.Detach().ok());
  EXPECT_EQ(counting->counter->bad_cookies(), 0u);
  size_t hit_functions = 0;
  for (uint32_t slot = 0; slot < resolution.targets().size(); ++slot) {
    const testing::Hit hit = counting->counter->At(slot);
    if (hit.cnt == 0) continue;
    ++hit_functions;
    EXPECT_EQ(hit.ip, resolution.targets()[slot].addr)
        << resolution.targets()[slot].name;
    absl::StatusOr<const Target*> found = resolution.FindByIp(hit.ip);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, &resolution.targets()[slot]);
  }
  EXPECT_GT(hit_functions, 300u);
  printf("%zu functions were hit\n", hit_functions);
}

TEST_F(AttachTest, GivenCookies) {
  std::vector<Request> requests = testing::ParseRequestTexts(
      {"syscall:getppid", "syscall:getpid", "vfs_read"});
  requests[0].set_cookie(2);
  requests[1].set_cookie(1);
  absl::StatusOr<Resolution> resolution = Resolve(requests);
  ASSERT_TRUE(resolution.ok()) << resolution.status();
  absl::StatusOr<Counting> counting =
      AttachCounter(*resolution, Calls::kThisProcess);
  ASSERT_TRUE(counting.ok()) << counting.status();
  TriggerGetppid(7);
  EXPECT_EQ(counting->counter->At(2).cnt, 7u);
  EXPECT_EQ(counting->counter->At(1).cnt, 0u);
  EXPECT_EQ(counting->counter->At(0).cnt, 0u);
}

// All instances of every name that is there more than once.
TEST_F(AttachTest, DuplicateNames) {
  const Resolution all = ResolveHere({"*"});
  std::map<std::string_view, int> traceable;
  for (const Target& target : all.targets()) ++traceable[target.name];
  std::map<std::string_view, int> untraceable;
  for (const Omission& omission : all.omissions()) {
    if (omission.reason == Reason::kNotTraceable) ++untraceable[omission.name];
  }
  std::vector<Request> requests;
  size_t instances = 0, with_twin = 0;
  for (const auto& [name, cnt] : traceable) {
    const bool twin = untraceable.contains(name);
    if (cnt < 2 && !twin) continue;
    requests.push_back(Request::Exact(std::string(name)));
    instances += static_cast<size_t>(cnt);
    with_twin += twin;
  }
  ASSERT_GT(requests.size(), 100u);
  EXPECT_GT(with_twin, 5u);
  absl::StatusOr<Resolution> resolution = Resolve(requests);
  ASSERT_TRUE(resolution.ok()) << resolution.status();
  EXPECT_GE(resolution->targets().size(), instances);
  absl::StatusOr<Counting> counting = AttachCounter(*resolution, Calls::kAll);
  ASSERT_TRUE(counting.ok()) << counting.status();
  EXPECT_EQ(counting->attachment.ReadStats()->cnt,
            resolution->targets().size());
  printf("%zu names with %zu instances, %zu with an untraceable twin\n",
         requests.size(), resolution->targets().size(), with_twin);
}

// A module's functions, by a module pattern; the module is loaded by the
// runner.
TEST_F(AttachTest, Modules) {
  const Resolution resolution = ResolveHere({"dumm?:*", "veth:veth_*"});
  std::set<std::string_view> modules;
  for (const Target& target : resolution.targets()) {
    modules.insert(target.module);
  }
  EXPECT_THAT(modules, ::testing::ElementsAre("dummy", "veth"));
  absl::StatusOr<Counting> counting = AttachCounter(resolution, Calls::kAll);
  ASSERT_TRUE(counting.ok()) << counting.status();
  ASSERT_EQ(system("ip link add name ks0 type dummy"), 0);
  EXPECT_EQ(counting->counter->At(SlotOf(resolution, "dummy_setup")).cnt, 1u);
  ASSERT_TRUE(counting->attachment.Detach().ok());
  ASSERT_EQ(system("ip link add name ks1 type dummy"), 0);
  EXPECT_EQ(counting->counter->At(SlotOf(resolution, "dummy_setup")).cnt, 1u);
  ASSERT_EQ(system("ip link del ks0; ip link del ks1"), 0);
}

TEST_F(AttachTest, SeveralLinks) {
  const Resolution resolution = ResolveHere({"vfs_*", "syscall:getppid"});
  AttachOptions options;
  options.max_per_link = 10;
  absl::StatusOr<Counting> counting =
      AttachCounter(resolution, Calls::kThisProcess, options);
  ASSERT_TRUE(counting.ok()) << counting.status();
  EXPECT_EQ(counting->attachment.links().size(),
            (resolution.targets().size() + 9) / 10);
  EXPECT_EQ(counting->attachment.ReadStats()->cnt, resolution.targets().size());
  TriggerGetppid(5);
  EXPECT_EQ(counting->counter->At(SlotOf(resolution, "__x64_sys_getppid")).cnt,
            5u);
}

// Root sees no addresses in kallsyms, but in the filter list.
TEST_F(AttachTest, HiddenAddressesFromTheList) {
  const testing::ScopedSetting hide("/proc/sys/kernel/kptr_restrict", "2");
  const Resolution resolution = ResolveHere({"vfs_*", "__do_sys_getppid"});
  EXPECT_EQ(resolution.stats().addresses, AddressState::kHidden);
  EXPECT_FALSE(resolution.by_name());
  absl::StatusOr<Counting> counting =
      AttachCounter(resolution, Calls::kThisProcess);
  ASSERT_TRUE(counting.ok()) << counting.status();
  TriggerGetppid(9);
  const uint32_t slot = SlotOf(resolution, "__do_sys_getppid");
  EXPECT_EQ(counting->counter->At(slot).cnt, 9u);
  EXPECT_EQ(counting->counter->At(slot).ip, resolution.targets()[slot].addr);
}

TEST_F(AttachTest, HiddenAddressesByName) {
  const testing::ScopedSetting hide("/proc/sys/kernel/kptr_restrict", "2");
  KernelFiles files;
  files.Disable(KernelFile::kFilterFunctionsAddrs);
  const Resolution resolution =
      ResolveHere({"vfs_*", "__do_sys_getppid"}, {}, files);
  EXPECT_TRUE(resolution.by_name());
  absl::StatusOr<Counting> counting =
      AttachCounter(resolution, Calls::kThisProcess);
  ASSERT_TRUE(counting.ok()) << counting.status();
  TriggerGetppid(9);
  EXPECT_EQ(counting->counter->At(SlotOf(resolution, "__do_sys_getppid")).cnt,
            9u);
}

TEST_F(AttachTest, WithoutTheListWithAddresses) {
  KernelFiles files;
  files.Disable(KernelFile::kFilterFunctionsAddrs);
  const Resolution resolution = ResolveHere({"*"}, {}, files);
  EXPECT_EQ(resolution.stats().filter_list, ListState::kNames);
  absl::StatusOr<Counting> counting = AttachCounter(resolution, Calls::kAll);
  ASSERT_TRUE(counting.ok()) << counting.status();
  EXPECT_GT(resolution.targets().size(), 30000u);
}

// A filter list that offers what the kernel does not trace: nothing is left
// attached, and the error names it and keeps the errno.
TEST_F(AttachTest, ARefusedFunctionFailsTheWhole) {
  testing::FakeKernel doctored;
  std::ifstream kallsyms("/proc/kallsyms");
  std::string list, line;
  for (std::string name; std::getline(kallsyms, line);) {
    name = line.substr(19);
    if (name == "vfs_read" || name == "exc_int3") {
      list += line.substr(0, 16) + " " + name + "\n";
    }
  }
  doctored.Write(KernelFile::kFilterFunctionsAddrs, list);
  KernelFiles files;
  files.Override(KernelFile::kFilterFunctionsAddrs,
                 doctored.Path(KernelFile::kFilterFunctionsAddrs));
  const Resolution resolution =
      ResolveHere({"vfs_read", "exc_int3"}, {}, files);
  std::unique_ptr<Counter> counter = Counter::Load(Kind::kKprobeMulti, 2);
  ASSERT_NE(counter, nullptr);
  const int before = testing::OpenDescriptors();
  absl::StatusOr<Attachment> attachment =
      Attach(resolution, counter->program());
  ASSERT_FALSE(attachment.ok());
  EXPECT_THAT(ErrnoOf(attachment.status()), ::testing::AnyOf(EINVAL, ENOENT));
  EXPECT_EQ(attachment.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(attachment.status().message()),
              HasSubstr("1 of 2 functions for kprobe.multi: exc_int3 ("));
  EXPECT_EQ(testing::OpenDescriptors(), before);
  ASSERT_EQ(system("cat /proc/version > /dev/null"), 0);
  EXPECT_EQ(counter->all_hits(), 0u);
  printf("%s\n", std::string(attachment.status().message()).c_str());
}

// `cnt` functions of the core kernel that it does not trace, spread over it.
std::vector<Omission> Untraceable(const Resolution& all, size_t cnt) {
  std::vector<Omission> found;
  for (const Omission& omission : all.omissions()) {
    if (omission.reason == Reason::kNotTraceable && omission.module.empty() &&
        omission.addr != 0) {
      found.push_back(omission);
    }
  }
  EXPECT_GT(found.size(), cnt);
  std::vector<Omission> spread;
  for (size_t i = 0; i < cnt && found.size() > cnt; ++i) {
    spread.push_back(found[i * found.size() / cnt]);
  }
  return spread;
}

// Ten among all, let through by a doctored filter list: all others are
// attached, the ten are named.
TEST_F(AttachTest, RefusedFunctionsAmongAllAreIsolated) {
  const Resolution honest = ResolveHere({"*"});
  std::ifstream real(KernelFiles().Path(KernelFile::kFilterFunctionsAddrs));
  std::string list((std::istreambuf_iterator<char>(real)),
                   std::istreambuf_iterator<char>());
  std::set<uint64_t> planted;
  for (const Omission& omission : Untraceable(honest, 10)) {
    planted.insert(omission.addr);
    list += absl::StrFormat("%016x %s\n", omission.addr,
                            std::string(omission.name));
  }
  testing::FakeKernel doctored;
  doctored.Write(KernelFile::kFilterFunctionsAddrs, list);
  KernelFiles files;
  files.Override(KernelFile::kFilterFunctionsAddrs,
                 doctored.Path(KernelFile::kFilterFunctionsAddrs));
  const Resolution resolution = ResolveHere({"*"}, {}, files);
  const size_t cnt = resolution.targets().size();
  ASSERT_EQ(cnt, honest.targets().size() + 10);
  std::unique_ptr<Counter> counter = Counter::Load(Kind::kKprobeMulti, cnt);
  ASSERT_NE(counter, nullptr);
  counter->OnlyThisProcess();
  const int before = testing::OpenDescriptors();

  absl::StatusOr<Attachment> attachment =
      Attach(resolution, counter->program());
  ASSERT_FALSE(attachment.ok());
  EXPECT_EQ(testing::OpenDescriptors(), before);
  printf("%s\n", std::string(attachment.status().message()).c_str());

  AttachOptions options;
  options.on_refused = OnRefused::kSkip;
  attachment = Attach(resolution, counter->program(), options);
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(testing::OpenDescriptors(), before + 1);
  EXPECT_EQ(attachment->links().size(), 1u);
  EXPECT_EQ(attachment->ReadStats()->cnt, honest.targets().size());
  EXPECT_LE(attachment->syscalls(), 2 * 10 * (13 + 1) + 3u);
  std::set<uint64_t> refused;
  for (const RefusedFunction& function : attachment->refused()) {
    EXPECT_THAT(function.err, ::testing::AnyOf(EINVAL, ENOENT));
    EXPECT_FALSE(attachment->IsAttached(function.slot));
    refused.insert(resolution.targets()[function.target].addr);
  }
  EXPECT_EQ(refused, planted);
  printf("%s", attachment->Report().ToString().c_str());

  // The slots behind the refused ones are still theirs.
  const uint32_t slot = SlotOf(resolution, "__x64_sys_getppid");
  EXPECT_TRUE(attachment->IsAttached(slot));
  const uint64_t counted = CountUndisturbed(*attachment, *counter, slot);
  EXPECT_EQ(counter->At(slot).ip, resolution.targets()[slot].addr);
  EXPECT_EQ(counter->bad_cookies(), 0u);
  ASSERT_TRUE(attachment->Detach().ok());
  TriggerGetppid(1000);
  EXPECT_EQ(counter->At(slot).cnt, counted);
  EXPECT_EQ(testing::OpenDescriptors(), before);
}

TEST_F(AttachTest, LoadedProgramsCannotBePreparedAgain) {
  std::unique_ptr<Counter> counter = Counter::Load(Kind::kKprobeMulti, 1);
  ASSERT_NE(counter, nullptr);
  const absl::Status status = PrepareProgram(
      const_cast<bpf_program*>(counter->program()), Kind::kKprobeMulti);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(AttachTest, WithoutPrivilege) {
  std::unique_ptr<Counter> counter = Counter::Load(Kind::kKprobeMulti, 1);
  ASSERT_NE(counter, nullptr);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(10);
    absl::StatusOr<Resolution> glob =
        Resolve(testing::ParseRequestTexts({"vfs_*"}));
    if (glob.ok() || ErrnoOf(glob.status()) != EACCES) _exit(11);
    absl::StatusOr<Resolution> exact =
        Resolve(testing::ParseRequestTexts({"vfs_read"}));
    if (!exact.ok() || !exact->by_name()) _exit(12);
    _exit(0);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state));
  EXPECT_EQ(WEXITSTATUS(state), 0);
}

// The other side: a kernel that cannot, says so.
TEST(WithoutFprobe, AttachSaysWhatIsMissing) {
  if (testing::KernelHas("CONFIG_FPROBE")) {
    GTEST_SKIP() << "this kernel has CONFIG_FPROBE";
  }
  const Resolution resolution = ResolveHere({"vfs_read"});
  std::unique_ptr<Counter> counter =
      Counter::Load(Kind::kKprobeMulti, resolution.targets().size());
  ASSERT_NE(counter, nullptr);
  absl::StatusOr<Attachment> attachment =
      Attach(resolution, counter->program());
  EXPECT_EQ(attachment.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ErrnoOf(attachment.status()), EOPNOTSUPP);
  EXPECT_THAT(std::string(attachment.status().message()),
              HasSubstr("CONFIG_FPROBE"));
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
