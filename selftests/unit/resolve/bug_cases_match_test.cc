// Defects that other tools had in matching names and in choosing what can be
// attached; numbered as in the project's bug log.

#include <algorithm>

#include "selftests/unit/resolve/resolve_fixture.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MustResolve;
using testing::OmissionsOf;
using testing::TargetNames;
using testing::TargetsOf;
using testing::UnmatchedOf;
using ::testing::UnorderedElementsAre;

ResolveOptions WithClones() {
  ResolveOptions options;
  options.clones = true;
  return options;
}

ResolveOptions ForKind(Kind kind) {
  ResolveOptions options;
  options.kinds = {kind};
  return options;
}

TEST(BugCases, BugCase30_OneNameSeveralAddresses) {
  const Resolution r = MustResolve({"ffffffff81300000 t q_start\n"
                                    "ffffffff81500000 t q_start\n"
                                    "ffffffffc0400000 t q_start\t[m]\n"},
                                   {"q_start"});
  EXPECT_THAT(TargetsOf(r), ElementsAre("q_start@ffffffff81300000",
                                        "q_start@ffffffff81500000",
                                        "m:q_start@ffffffffc0400000"));
}

TEST(BugCases, BugCase31_TheCompilerRenamedTheFunction) {
  const testing::Lists lists = {"ffffffff8110c2d0 t task_fin_switch.isra.0\n"};
  const Resolution exact = MustResolve(lists, {"task_fin_switch"});
  EXPECT_THAT(UnmatchedOf(exact),
              ElementsAre("task_fin_switch NotFound [task_fin_switch.isra.0]"));
  EXPECT_THAT(std::string(exact.CheckMissing().message()),
              HasSubstr("task_fin_switch.isra.0"));
  const Resolution clones =
      MustResolve(lists, {"task_fin_switch"}, WithClones());
  ASSERT_THAT(TargetNames(clones), ElementsAre("task_fin_switch.isra.0"));
  EXPECT_TRUE(clones.targets()[0].clone);
}

TEST(BugCases, BugCase32_BaseAndClone) {
  const testing::Lists both = {
      "ffffffff81000000 t fail_slab_q\n"
      "ffffffff81000100 t fail_slab_q.constprop.0\n"};
  EXPECT_THAT(TargetNames(MustResolve(both, {"fail_slab_q"})),
              ElementsAre("fail_slab_q"));
  const Resolution two = MustResolve(both, {"fail_slab_q"}, WithClones());
  ASSERT_THAT(TargetNames(two),
              ElementsAre("fail_slab_q", "fail_slab_q.constprop.0"));
  EXPECT_FALSE(two.targets()[0].clone);
  EXPECT_TRUE(two.targets()[1].clone);

  const testing::Lists only = {
      "ffffffff81000000 t skb_iter_q.constprop.0\n"
      "ffffffff81000100 t skb_iter_q.constprop.1\n"};
  EXPECT_THAT(UnmatchedOf(MustResolve(only, {"skb_iter_q"})),
              ElementsAre("skb_iter_q NotFound [skb_iter_q.constprop.0 "
                          "skb_iter_q.constprop.1]"));
  EXPECT_EQ(MustResolve(only, {"skb_iter_q"}, WithClones()).targets().size(),
            2u);
}

TEST(BugCases, BugCase33_LtoSuffixIsTheSameFunction) {
  const std::string first = "ffffffffc03517a0 t ovx_create.llvm.10133\t[ovx]\n";
  const Resolution stripped = MustResolve({first}, {"ovx_create"});
  ASSERT_EQ(stripped.targets().size(), 1u);
  EXPECT_EQ(stripped.targets()[0].module, "ovx");
  EXPECT_FALSE(stripped.targets()[0].clone);

  const std::string second = first + "ffffffffc0600000 t ovx_create\t[other]\n";
  EXPECT_THAT(TargetsOf(MustResolve({second}, {"ovx_create"})),
              ElementsAre("other:ovx_create@ffffffffc0600000"));
  // In its own module there is still only the one.
  EXPECT_THAT(TargetNames(MustResolve({second}, {"ovx:ovx_create"})),
              ElementsAre("ovx_create.llvm.10133"));
  EXPECT_EQ(MustResolve({second}, {"*_create"}).targets().size(), 2u);
  // Some kernels strip the suffix in the filter list only.
  EXPECT_EQ(MustResolve({first, "ffffffffc03517a4 ovx_create [ovx]\n"},
                        {"ovx_create"})
                .targets()
                .size(),
            1u);
}

TEST(BugCases, BugCase34_GlobThatMustHitExactlyOne) {
  const auto unique = [](const std::string& text, const char* pattern) {
    std::vector<Request> requests = testing::ParseAll({pattern});
    requests[0].set_unique();
    ResolveOptions options;
    options.missing = OnMissing::kReport;
    return *testing::ResolveLists({text}, requests, options);
  };
  const std::string one = "ffffffff81000000 t wake_q.llvm.77\n";
  EXPECT_THAT(TargetNames(unique(one, "wake_q*")),
              ElementsAre("wake_q.llvm.77"));
  EXPECT_THAT(UnmatchedOf(unique(one, "sleep_q*")),
              ElementsAre("sleep_q* NotFound []"));
  const std::string two = one + "ffffffff81000100 t wake_queue\n";
  const Resolution r = unique(two, "wake_q*");
  EXPECT_THAT(r.targets(), IsEmpty());
  EXPECT_THAT(UnmatchedOf(r),
              ElementsAre("wake_q* Ambiguous [wake_q.llvm.77 wake_queue]"));
  EXPECT_THAT(OmissionsOf(r),
              ElementsAre("wake_q.llvm.77 Ambiguous", "wake_queue Ambiguous"));
}

TEST(BugCases, BugCase35_CfiJumpTableEntries) {
  const testing::Lists lists = {
      "ffffffff81000000 t sel_setattr\n"
      "ffffffff81000100 t sel_setattr.9f3a\n"
      "ffffffff81000200 t sel_setattr.9f3a.cfi_jt\n"
      "ffffffff81000300 t __cfi_sel_setattr\n"};
  EXPECT_THAT(TargetNames(MustResolve(lists, {"*"})),
              ElementsAre("sel_setattr", "sel_setattr.9f3a"));
  const Resolution r = MustResolve(lists, {"sel_setattr"}, WithClones());
  EXPECT_THAT(TargetNames(r), ElementsAre("sel_setattr", "sel_setattr.9f3a"));
  EXPECT_TRUE(r.targets()[1].clone);
}

TEST(BugCases, BugCase36_WholeNamesAreMatched) {
  const testing::Lists lists = {
      "ffffffff81000000 t vfs_q\n"
      "ffffffff81000100 t vfs_q2\n"
      "ffffffff81000200 t my_vfs_q\n"};
  EXPECT_THAT(TargetNames(MustResolve(lists, {"vfs_q"})), ElementsAre("vfs_q"));
  EXPECT_THAT(TargetNames(MustResolve(lists, {"vfs_?"})), ElementsAre("vfs_q"));
  EXPECT_THAT(TargetNames(MustResolve(lists, {"*vfs_q"})),
              ElementsAre("vfs_q", "my_vfs_q"));
}

TEST(BugCases, BugCase37_SameFunctionInTwoModules) {
  const testing::Lists lists = {
      "ffffffffc0615730 t fw_download_q\t[mgmt_a]\n"
      "ffffffffc07442c0 t fw_download_q\t[user_b]\n"};
  EXPECT_EQ(MustResolve(lists, {"fw_download_q"}).targets().size(), 2u);
  EXPECT_THAT(TargetsOf(MustResolve(lists, {"user_b:fw_download_q"})),
              ElementsAre("user_b:fw_download_q@ffffffffc07442c0"));
  EXPECT_THAT(TargetsOf(MustResolve(lists, {"*_b:fw_*"})),
              ElementsAre("user_b:fw_download_q@ffffffffc07442c0"));
}

TEST(BugCases, BugCase38_AmbiguousByNameOnly) {
  const std::string twice =
      "ffffffff81000000 t elf_load_q\nffffffff81000100 t elf_load_q\n";
  EXPECT_EQ(MustResolve({twice}, {"elf_load_q"}).targets().size(), 2u);
  // By name the kernel would take the first: neither, and said why.
  std::string hidden = twice;
  for (size_t at = 0; at < hidden.size(); at = hidden.find('\n', at) + 1) {
    hidden.replace(at, 16, 16, '0');
  }
  const Resolution r =
      MustResolve({hidden, "none", "elf_load_q\nelf_load_q\n"}, {"elf_load_q"});
  EXPECT_THAT(OmissionsOf(r), ElementsAre("elf_load_q AddressesHidden",
                                          "elf_load_q AddressesHidden"));
}

TEST(BugCases, BugCase39_EveryDuplicateIsTraced) {
  std::string text;
  for (int i = 0; i < 5; ++i) {
    text += absl::StrFormat("ffffffff8100%d000 t seq_next_q\n", i);
  }
  const Resolution r = MustResolve({text}, {"seq_next_q"});
  EXPECT_EQ(r.targets().size(), 5u);
}

TEST(BugCases, BugCase40_UnrelatedDuplicatesDoNotMatter) {
  const testing::Lists lists = {
      "ffffffff81000000 t elf_load_q\n"
      "ffffffff81000100 t elf_load_q\n"
      "ffffffff81000200 t vfs_q\n"};
  EXPECT_THAT(TargetNames(MustResolve(lists, {"vfs_q"})), ElementsAre("vfs_q"));
  const Resolution both = MustResolve(lists, {"vfs_q", "elf_load_q"});
  for (const Target& target : both.targets()) EXPECT_EQ(target.module, "");
}

TEST(BugCases, BugCase41_SyscallPrefixes) {
  EXPECT_THAT(
      TargetNames(MustResolve({"ffff800008000000 T __arm64_sys_openq\n"},
                              {"syscall:openq"})),
      ElementsAre("__arm64_sys_openq"));
  const testing::Lists x86 = {
      "ffffffff81000000 T __ia32_sys_openq\n"
      "ffffffff81000100 T __x64_sys_openq\n"
      "ffffffff81000200 T __ia32_sys_socketcallq\n"
      "ffffffff81000300 T plain_q\n"};
  EXPECT_THAT(TargetNames(MustResolve(x86, {"syscall:openq", "plain_q"})),
              ElementsAre("__x64_sys_openq", "plain_q"));
  // Not one of the 64-bit ones: said, not guessed.
  EXPECT_THAT(
      UnmatchedOf(MustResolve(x86, {"syscall:openq", "syscall:socketcallq"})),
      ElementsAre("syscall:socketcallq NotFound [__ia32_sys_socketcallq]"));
  EXPECT_THAT(
      TargetNames(MustResolve({"c0000000 T sys_openq\n"}, {"syscall:openq"})),
      ElementsAre("sys_openq"));
}

TEST(BugCases, BugCase42_UntraceableFunctionsAreLeftOut) {
  const testing::Lists lists = {
      "ffffffff81000000 t a\nffffffff81000100 t b\nffffffff81000200 t c\n",
      "ffffffff81000000 a\nffffffff81000204 c\n"};
  const Resolution glob = MustResolve(lists, {"*"});
  EXPECT_THAT(TargetNames(glob), ElementsAre("a", "c"));
  EXPECT_THAT(OmissionsOf(glob), ElementsAre("b NotTraceable"));

  absl::StatusOr<Resolution> strict =
      testing::ResolveLists(lists, testing::ParseAll({"b", "a"}), {});
  EXPECT_EQ(strict.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(strict.status().message()),
              HasSubstr("'b': NotTraceable"));
  EXPECT_THAT(TargetNames(MustResolve(lists, {"b", "a"})), ElementsAre("a"));
}

TEST(BugCases, BugCase43_MoreCopiesThanTheListHas) {
  const std::string text =
      "ffffffff81000000 t p_init\nffffffff81000100 t p_init\n";
  EXPECT_THAT(
      TargetsOf(MustResolve({text, "ffffffff81000104 p_init\n"}, {"p_init"})),
      ElementsAre("p_init@ffffffff81000100"));
  const Resolution counted =
      MustResolve({text, "none", "p_init\n"}, {"p_init"});
  EXPECT_THAT(OmissionsOf(counted),
              ElementsAre("p_init Undecidable", "p_init Undecidable"));
  EXPECT_EQ(counted.omissions()[0].detail,
            "2 in kallsyms, 1 in the filter list");
  EXPECT_EQ(MustResolve({text, "none", "p_init\np_init\n"}, {"p_init"})
                .targets()
                .size(),
            2u);
}

TEST(BugCases, BugCase44_FakeEntriesOfTheFilterList) {
  const Resolution r =
      MustResolve({"ffffffff81000000 t vfs_q\n"
                   "ffffffff81000200 t __ftrace_invalid_address___512\n",
                   "ffffffff81000000 vfs_q\n"
                   "ffffffff81000200 __ftrace_invalid_address___512\n"
                   "ffffffffc0000040 __ftrace_invalid_address___64 [drvx]\n"},
                  {"*"});
  EXPECT_THAT(TargetNames(r), ElementsAre("vfs_q"));
  EXPECT_THAT(r.omissions(), IsEmpty());
  EXPECT_THAT(r.stats().unjoined, IsEmpty());
}

TEST(BugCases, BugCase45_BlacklistByAddressRange) {
  testing::FakeKernel kernel;
  testing::WriteLists({"ffffffff81e0a340 t do_trp\n"
                       "ffffffff81f00000 t do_trp\n"},
                      &kernel);
  kernel.Write(KernelFile::kBlacklist,
               "0xffffffff81e0a340-0xffffffff81e0a4c0\tdo_trp\n");
  absl::StatusOr<Resolution> perf = Resolve(
      testing::ParseAll({"do_trp"}), kernel.files(), ForKind(Kind::kKprobe));
  ASSERT_TRUE(perf.ok()) << perf.status();
  EXPECT_THAT(TargetsOf(*perf), ElementsAre("do_trp@ffffffff81f00000"));
  EXPECT_THAT(OmissionsOf(*perf), ElementsAre("do_trp Blacklisted"));
  // The kernel does not apply it to kprobe.multi.
  absl::StatusOr<Resolution> multi =
      Resolve(testing::ParseAll({"do_trp"}), kernel.files());
  ASSERT_TRUE(multi.ok());
  EXPECT_EQ(multi->targets().size(), 2u);
  EXPECT_EQ(multi->stats().blacklist, ListState::kNotNeeded);
  // Missing or zeroed: no filter, with a note.
  for (const char* text : {"", "0x0000000000000000-0x0000000000000000\tx\n"}) {
    kernel.Write(KernelFile::kBlacklist, text);
    perf = Resolve(testing::ParseAll({"do_trp"}), kernel.files(),
                   ForKind(Kind::kKprobe));
    ASSERT_TRUE(perf.ok());
    EXPECT_EQ(perf->targets().size(), 2u);
    EXPECT_THAT(perf->stats().notes, ElementsAre(HasSubstr("blacklist")));
  }
}

TEST(BugCases, BugCase46_FreedCode) {
  const std::string text =
      "ffffffff81000000 T _stext\n"
      "ffffffff81010000 t vfs_q\n"
      "ffffffff81a00000 T _etext\n"
      "ffffffff82f00000 T __init_begin\n"
      "ffffffff82f00100 t vfs_q_init\n"
      "ffffffff83100000 T __init_end\n"
      "ffffffff83200000 t vfs_q_exit\n";
  const Resolution multi =
      MustResolve({text, "ffffffff81010000 vfs_q\n"}, {"vfs_*"});
  EXPECT_THAT(TargetNames(multi), ElementsAre("vfs_q"));
  EXPECT_THAT(OmissionsOf(multi),
              ElementsAre("vfs_q_init InitSection", "vfs_q_exit NotTraceable"));
  const Resolution perf =
      MustResolve({text}, {"vfs_*"}, ForKind(Kind::kKprobe));
  EXPECT_THAT(TargetNames(perf), ElementsAre("vfs_q"));
  EXPECT_THAT(OmissionsOf(perf),
              ElementsAre("vfs_q_init InitSection", "vfs_q_exit NotTraceable"));
}

TEST(BugCases, BugCase47_TheFilterListIsNotForEveryKind) {
  const testing::Lists lists = {"ffffffff81000000 t a\nffffffff81000100 t b\n",
                                "ffffffff81000000 a\n"};
  EXPECT_THAT(TargetNames(MustResolve(lists, {"*"}, ForKind(Kind::kKprobe))),
              ElementsAre("a", "b"));
  EXPECT_THAT(
      TargetNames(MustResolve(lists, {"*"}, ForKind(Kind::kKprobeMulti))),
      ElementsAre("a"));
  ResolveOptions both;
  both.kinds = {Kind::kKprobeMulti, Kind::kKprobe};
  const Resolution r = MustResolve(lists, {"*"}, both);
  ASSERT_EQ(r.targets().size(), 2u);
  EXPECT_EQ(r.targets()[0].kinds, both.kinds);
  EXPECT_EQ(r.targets()[1].kinds, KindSet{Kind::kKprobe});
  ASSERT_EQ(r.targets()[1].misfits.size(), 1u);
  EXPECT_EQ(r.targets()[1].misfits[0].kind, Kind::kKprobeMulti);
  EXPECT_EQ(r.targets()[1].misfits[0].reason, Reason::kNotTraceable);
}

TEST(BugCases, BugCase48_ListOrTracefsMissing) {
  const std::string text = "ffffffff81000000 t a\nffffffff81000100 t b\n";
  const std::string list = "ffffffff81000000 a\n";
  {  // (a) tracefs at its own place, (b) only below debugfs.
    for (const char* place :
         {"sys/kernel/tracing/available_filter_functions_addrs",
          "sys/kernel/debug/tracing/available_filter_functions_addrs"}) {
      testing::FakeKernel kernel;
      kernel.Write(KernelFile::kKallsyms, text).WritePath(place, list);
      absl::StatusOr<Resolution> r =
          Resolve(testing::ParseAll({"*"}), kernel.files());
      ASSERT_TRUE(r.ok()) << r.status();
      EXPECT_THAT(TargetNames(*r), ElementsAre("a"));
      EXPECT_EQ(r->stats().files[1].path, place);
    }
  }
  // (c) none: globs fail and say what to do; exact names can be tried.
  const testing::Lists none = {text, "none"};
  absl::StatusOr<Resolution> glob =
      testing::ResolveLists(none, testing::ParseAll({"a*"}), {});
  EXPECT_EQ(glob.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(glob.status().message()), HasSubstr("'a*'"));
  EXPECT_THAT(std::string(glob.status().message()), HasSubstr("mount tracefs"));
  const Resolution exact = MustResolve(none, {"a"});
  ASSERT_THAT(TargetNames(exact), ElementsAre("a"));
  EXPECT_TRUE(exact.targets()[0].untested);
  EXPECT_EQ(exact.stats().filter_list, ListState::kMissing);
  ResolveOptions try_all;
  try_all.untested = Untested::kTry;
  EXPECT_THAT(TargetNames(MustResolve(none, {"*"}, try_all)),
              ElementsAre("a", "b"));
  // (d) there, but not to be read: the first error stands, the second place is
  // not tried.
  testing::FakeKernel kernel;
  kernel.Write(KernelFile::kKallsyms, text)
      .WritePath("sys/kernel/tracing", "a file, so what is below is ENOTDIR")
      .WritePath("sys/kernel/debug/tracing/available_filter_functions", "a\n");
  kernel.Write(KernelFile::kLockdown, "none integrity [confidentiality]\n");
  glob = Resolve(testing::ParseAll({"a*"}), kernel.files());
  ASSERT_FALSE(glob.ok());
  EXPECT_THAT(std::string(glob.status().message()),
              HasSubstr("Not a directory"));
  EXPECT_THAT(std::string(glob.status().message()),
              HasSubstr("confidentiality"));
}

TEST(BugCases, BugCase50_GlobsThatHangTheMachine) {
  const testing::Lists lists = {
      "ffffffff81000000 t rcu_q\n"
      "ffffffff81000100 t arch_cpu_idle\n"
      "ffffffff81000200 t vfs_q\n"};
  const Resolution r = MustResolve(lists, {"*"});
  EXPECT_THAT(TargetNames(r), ElementsAre("vfs_q"));
  EXPECT_THAT(OmissionsOf(r), ElementsAre("rcu_q DefaultDenied",
                                          "arch_cpu_idle DefaultDenied"));
  EXPECT_THAT(std::string(r.omissions()[0].detail), HasSubstr("RCU"));
  // Off for exact names, replaceable, and there is a limit.
  EXPECT_THAT(TargetNames(MustResolve(lists, {"rcu_q", "vfs_*"})),
              ElementsAre("rcu_q", "vfs_q"));
  ResolveOptions options;
  options.default_deny = false;
  EXPECT_EQ(MustResolve(lists, {"*"}, options).targets().size(), 3u);
  const DefaultDeny own[] = {{"vfs_*", "not here"}};
  options.default_deny = true;
  options.default_deny_list = own;
  EXPECT_THAT(TargetNames(MustResolve(lists, {"*"}, options)),
              ElementsAre("rcu_q", "arch_cpu_idle"));
  options.max_targets = 1;
  absl::StatusOr<Resolution> limited =
      testing::ResolveLists(lists, testing::ParseAll({"*"}), options);
  EXPECT_EQ(limited.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(limited.status().message()),
              HasSubstr("2 functions match, more than the 1 allowed"));
}

TEST(BugCases, BugCase53_CookiesStayWithTheirFunction) {
  const std::vector<std::string> lines = {
      "ffffffff81000000 t m_q\n", "ffffffff81000100 t z_q\n",
      "ffffffff81000200 t b_q\n", "ffffffff81000300 t a_q\n"};
  std::vector<Request> requests =
      testing::ParseAll({"z_q", "a_q", "m_q", "b*"});
  const uint64_t cookies[] = {1, 2, 3, 9};
  for (size_t i = 0; i < 4; ++i) requests[i].set_cookie(cookies[i]);
  std::vector<int> order = {0, 1, 2, 3};
  do {
    std::vector<Request> shuffled;
    std::string text;
    for (int i : order) {
      shuffled.push_back(requests[static_cast<size_t>(i)]);
      text += lines[static_cast<size_t>(3 - i)];
    }
    absl::StatusOr<Resolution> r = testing::ResolveLists({text}, shuffled, {});
    ASSERT_TRUE(r.ok());
    std::vector<std::pair<std::string, uint64_t>> got;
    for (const Target& t : r->targets()) got.emplace_back(t.name, t.cookie);
    using P = std::pair<std::string, uint64_t>;
    EXPECT_THAT(
        got, ElementsAre(P("m_q", 3), P("z_q", 1), P("b_q", 9), P("a_q", 2)));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(BugCases, BugCase54_TheSameFunctionTwice) {
  const Resolution r =
      MustResolve({"ffffffff81000000 t a_q\nffffffff81000100 t a_r\n"},
                  {"a_q", "a*", "a_q", "0xffffffff81000000"});
  ASSERT_THAT(TargetNames(r), ElementsAre("a_q", "a_r"));
  EXPECT_THAT(r.targets()[0].requests, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(r.ForRequest(1), ElementsAre(0, 1));
  EXPECT_THAT(r.ForRequest(3), ElementsAre(0));
}

TEST(BugCases, BugCase65_ModuleNotLoaded) {
  const Resolution r =
      MustResolve({"ffffffff81000000 t a\nffffffffc0000000 t b\t[m]\n"},
                  {"drvx:*", "drvx:b", "m:nope", "m:*"});
  EXPECT_THAT(UnmatchedOf(r), UnorderedElementsAre("drvx:* ModuleNotLoaded []",
                                                   "drvx:b ModuleNotLoaded []",
                                                   "m:nope NotFound []"));
}

}  // namespace
}  // namespace ksweep
