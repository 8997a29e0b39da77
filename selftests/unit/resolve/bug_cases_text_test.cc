// Defects that other tools had with the symbol text. Every test is named after
// what went wrong; the numbers are those of the project's bug log.

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

// Fillers so that a text is not hidden, and has a first and a last line.
constexpr char kLine[] = "ffffffff81000000 T a_line\n";

TEST(BugCases, BugCase01_ModuleTagIsNoPartOfTheName) {
  const Resolution r =
      MustResolve({"ffffffff81000100 t vfs_fsync\n"
                   "ffffffffc0100000 t nd_region_open\t[libnd]\n",
                   "ffffffff81000100 vfs_fsync\n"
                   "ffffffffc0100000 nd_region_open [libnd]\n"},
                  {"*region*"});
  EXPECT_THAT(TargetsOf(r),
              ElementsAre("libnd:nd_region_open@ffffffffc0100000"));
}

TEST(BugCases, BugCase02_ModuleFunctionsLieOutsideTheCoresText) {
  const Resolution r =
      MustResolve({"ffffffff81000000 T _stext\n"
                   "ffffffff8198d2c0 T _etext\n"
                   "ffffffffa0214e30 t nfs4_opendir_x\t[nfs]\n"},
                  {"nfs4_opendir_x"});
  EXPECT_THAT(TargetsOf(r), ElementsAre("nfs:nfs4_opendir_x@ffffffffa0214e30"));
  ResolveOptions perf;
  perf.kinds = {Kind::kKprobe};
  EXPECT_THAT(TargetNames(MustResolve({"ffffffff81000000 T _stext\n"
                                       "ffffffff8198d2c0 T _etext\n"
                                       "ffffffffa0214e30 t f\t[nfs]\n"},
                                      {"f"}, perf)),
              ElementsAre("f"));
}

TEST(BugCases, BugCase03_TabBeforeTheModule) {
  const testing::Lists functions = {
      "ffffffffc0561c40 t drc_count\t[nfsd]\n"
      "ffffffffc0c00040 t drc_count\t[nfsd_test]\n"};
  EXPECT_EQ(MustResolve(functions, {"drc_count"}).targets().size(), 2u);
  EXPECT_THAT(TargetsOf(MustResolve(functions, {"nfsd:drc_count"})),
              ElementsAre("nfsd:drc_count@ffffffffc0561c40"));

  std::vector<Request> unique = testing::ParseAll({"drc_count"});
  unique[0].set_unique();
  ResolveOptions report;
  report.missing = OnMissing::kReport;
  absl::StatusOr<Resolution> r =
      testing::ResolveLists(functions, unique, report);
  ASSERT_TRUE(r.ok());
  EXPECT_THAT(r->targets(), IsEmpty());
  EXPECT_THAT(UnmatchedOf(*r), ElementsAre("drc_count Ambiguous [drc_count]"));
  EXPECT_EQ(r->omissions().size(), 2u);

  // As data they are no functions; never an address 0 for "not found".
  const Resolution data = MustResolve(
      {std::string(kLine) + "ffffffffc0561c40 b drc_count\t[nfsd]\n"
                            "ffffffffc0c00040 b drc_count\t[nfsd_test]\n"},
      {"drc_count", "nfsd:drc_count", "a_line"});
  EXPECT_THAT(UnmatchedOf(data),
              ElementsAre("drc_count NotAFunction [drc_count]",
                          "nfsd:drc_count NotAFunction [drc_count]"));
}

TEST(BugCases, BugCase04_HiddenAddressesAreAStateNotAnError) {
  const testing::Lists lists = {
      "0000000000000000 T _stext\n"
      "0000000000000000 t tcp_v9_rcv\n"
      "0000000000000000 t nft_x_eval\t[nf_tables]\n",
      "none", "tcp_v9_rcv\nnft_x_eval [nf_tables]\n"};
  testing::FakeKernel kernel;
  testing::WriteLists(lists, &kernel);
  kernel.Write(KernelFile::kKptrRestrict, "2\n");
  absl::StatusOr<Resolution> r =
      Resolve(testing::ParseAll({"tcp_*", "nf_tables:*"}), kernel.files());
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE(r->by_name());
  EXPECT_EQ(r->stats().addresses, AddressState::kHidden);
  // By owner and name.
  EXPECT_THAT(TargetsOf(*r),
              ElementsAre("tcp_v9_rcv@0", "nf_tables:nft_x_eval@0"));
  std::string notes;
  for (const std::string& note : r->stats().notes) notes += note + "\n";
  EXPECT_THAT(notes, HasSubstr("kernel.kptr_restrict is 2"));
  EXPECT_EQ(r->FindByIp(0x1000).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(BugCases, BugCase05_ZeroIsNeverAnAddress) {
  const Resolution r =
      MustResolve({std::string(kLine) + "0000000000000000 D some_ops\n"
                                        "0000000000000000 A percpu_x\n"},
                  {"some_ops", "a_line"});
  EXPECT_EQ(r.stats().addresses, AddressState::kFull);
  EXPECT_THAT(UnmatchedOf(r), ElementsAre("some_ops NotAFunction [some_ops]"));

  // A function without address among others that have one.
  const Resolution partial =
      MustResolve({std::string(kLine) + "0000000000000000 t f_hidden\n", "none",
                   "a_line\nf_hidden\n"},
                  {"*"});
  EXPECT_EQ(partial.stats().addresses, AddressState::kPartial);
  EXPECT_FALSE(partial.by_name());
  EXPECT_THAT(TargetNames(partial), ElementsAre("a_line"));
  EXPECT_THAT(OmissionsOf(partial), ElementsAre("f_hidden AddressesHidden"));
}

TEST(BugCases, BugCase06_HiddenAddressesDoNotChangeTheSyscallPrefix) {
  const Resolution r = MustResolve({"0000000000000000 t __x64_sys_openq\n"
                                    "0000000000000000 t sys_openq\n",
                                    "none", "__x64_sys_openq\nsys_openq\n"},
                                   {"syscall:openq"});
  EXPECT_THAT(TargetNames(r), ElementsAre("__x64_sys_openq"));
}

TEST(BugCases, BugCase07_NoFunctionIsFoundFromAllZeroText) {
  const Resolution r = MustResolve(
      {"0000000000000000 t a\n0000000000000000 t b\n0000000000000000 t c\n",
       "none", "a\nb\nc\n"},
      {"*"});
  EXPECT_FALSE(r.FindByIp(0xffffffff81234567).ok());
}

TEST(BugCases, BugCase08_FirstAndLastLineCount) {
  const std::string text =
      "ffffffff81000000 T first_f\nffffffff81000100 T last_f\n";
  EXPECT_THAT(TargetNames(MustResolve({text}, {"first_f", "last_f"})),
              ElementsAre("first_f", "last_f"));
  const std::string open_end = text.substr(0, text.size() - 1);
  EXPECT_THAT(TargetNames(MustResolve({open_end, testing::AllTraceable(text)},
                                      {"first_f", "last_f"})),
              ElementsAre("first_f", "last_f"));

  absl::StatusOr<Resolution> empty =
      testing::ResolveLists({"", "none"}, testing::ParseAll({"a"}), {});
  EXPECT_EQ(empty.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(empty.status().message()), HasSubstr("no symbol"));
}

TEST(BugCases, BugCase09_NamesAreBytes) {
  const std::string text =
      "ffffffff81000000 t drv_\xc3\xa9_on\n"
      "ffffffff81000100 t x\xff\xfey\n"
      "ffffffff81000200 t drv_plain\n";
  EXPECT_THAT(TargetNames(MustResolve({text}, {"drv_*"})),
              ElementsAre("drv_\xc3\xa9_on", "drv_plain"));
  EXPECT_THAT(TargetNames(MustResolve({text}, {"x??y"})),
              ElementsAre("x\xff\xfey"));
  EXPECT_THAT(MustResolve({text}, {"x?y"}).targets(), IsEmpty());
  EXPECT_THAT(TargetNames(MustResolve({text}, {"x\xff\xfey"})),
              ElementsAre("x\xff\xfey"));
}

TEST(BugCases, BugCase10_NamesOfAnyLength) {
  std::string text;
  std::vector<std::string> names;
  uint64_t addr = 0xffffffffc0000000;
  for (size_t length : {127, 128, 255, 256, 511, 512, 5000, 70000}) {
    for (char last : {'a', 'b'}) {
      names.push_back(std::string(length - 1, 'n') + last);
      text += absl::StrFormat("%x t %s\t[m]\n", addr, names.back());
      addr += 0x100;
    }
  }
  EXPECT_EQ(TargetNames(MustResolve({text}, names)), names);
  EXPECT_EQ(TargetNames(MustResolve({text}, {"m:n*"})), names);
}

TEST(BugCases, BugCase11_AddressesAre64Bit) {
  const Resolution r = MustResolve(
      {"c0123450 t vfs_q\nffffffff81000000 t vfs_r\n10 T low_f\n"}, {"*"});
  EXPECT_THAT(TargetsOf(r), ElementsAre("low_f@10", "vfs_q@c0123450",
                                        "vfs_r@ffffffff81000000"));
}

TEST(BugCases, BugCase12_KallsymsIsNotSorted) {
  const std::string text =
      "ffffffff81a00000 T core_b\n"
      "ffffffffc0200400 t bpf_prog_aa11_two\t[bpf]\n"
      "ffffffffc0200000 t bpf_prog_bb22_one\t[bpf]\n"
      "ffffffffc0300100 t mod_b\t[m]\n"
      "ffffffffc0300000 t mod_a\t[m]\n"
      "ffffffff81900000 t core_a\n";
  const Resolution r = MustResolve({text}, {"*"});
  EXPECT_THAT(TargetNames(r),
              ElementsAre("core_a", "core_b", "mod_a", "mod_b"));
  ASSERT_TRUE(r.FindByIp(0xffffffff81900004).ok());
  EXPECT_EQ((*r.FindByIp(0xffffffff81900004))->name, "core_a");
  EXPECT_FALSE(r.FindByIp(0xffffffffc0200010).ok());
}

TEST(BugCases, BugCase13_MappingSymbolsAreNoNames) {
  const Resolution r =
      MustResolve({"ffff800079a04120 d $d\t[ovsx]\n"
                   "ffff800079a04120 d __tracepoint_ovsx_act\t[ovsx]\n"
                   "ffff800079a10000 t $x.17\t[ovsx]\n"
                   "ffff800079a10000 t ovsx_exec\t[ovsx]\n"
                   "ffff800079a10100 t with$x\t[ovsx]\n",
                   "ffff800079a10008 ovsx_exec [ovsx]\n"
                   "ffff800079a10100 with$x [ovsx]\n"},
                  {"*"});
  EXPECT_THAT(TargetNames(r), ElementsAre("ovsx_exec", "with$x"));
  EXPECT_THAT(r.targets()[0].aliases, IsEmpty());
  EXPECT_THAT(r.omissions(), IsEmpty());
}

TEST(BugCases, BugCase14_PadsAreNoFunctions) {
  const std::string text =
      "ffffffff81200fd0 t __pfx_vfs_q\n"
      "ffffffff81200fe0 t vfs_q\n"
      "ffffffff81201050 t do__pfx_thing\n";
  EXPECT_THAT(TargetNames(MustResolve({text}, {"vfs_*"})),
              ElementsAre("vfs_q"));
  const Resolution all = MustResolve({text}, {"*"});
  EXPECT_THAT(TargetNames(all), ElementsAre("vfs_q", "do__pfx_thing"));
  EXPECT_THAT(all.omissions(), IsEmpty());
  EXPECT_THAT(TargetNames(MustResolve({text}, {"*__pfx*"})),
              ElementsAre("do__pfx_thing"));
  EXPECT_THAT(UnmatchedOf(MustResolve({text}, {"__pfx_*", "__pfx_vfs_q"})),
              ElementsAre("__pfx_* NotAFunction []",
                          "__pfx_vfs_q NotAFunction [__pfx_vfs_q]"));
}

TEST(BugCases, BugCase15_StaticCallStubs) {
  const testing::Lists lists = {std::string(kLine) +
                                "ffffffff8230c1a8 t __SCT__tp_func_qdisc_x\n"};
  EXPECT_THAT(TargetNames(MustResolve(lists, {"*"})), ElementsAre("a_line"));
  // Also where no list says so.
  ResolveOptions perf;
  perf.kinds = {Kind::kKprobe};
  EXPECT_THAT(TargetNames(MustResolve(lists, {"*"}, perf)),
              ElementsAre("a_line"));
}

TEST(BugCases, BugCase16_ColdHalves) {
  const Resolution r = MustResolve({"ffffffff81000000 t vfs_q\n"
                                    "ffffffff81000100 t vfs_q.cold\n"
                                    "ffffffff81000200 t vfs_r.cold.12\n"
                                    "ffffffff81000300 t coldplug_x\n"},
                                   {"*"});
  EXPECT_THAT(TargetNames(r), ElementsAre("vfs_q", "coldplug_x"));
}

TEST(BugCases, BugCase17_DataWithAFunctionsName) {
  const Resolution r = MustResolve(
      {"ffffffff81431000 t ring_ops\nffffffff82c41040 d ring_ops\n"},
      {"ring_ops"});
  EXPECT_THAT(TargetsOf(r), ElementsAre("ring_ops@ffffffff81431000"));
  EXPECT_THAT(r.unmatched(), IsEmpty());
}

TEST(BugCases, BugCase18_WeakFunctionsAreFunctions) {
  const Resolution r = MustResolve({"ffffffff810aa000 W arch_q_init\n"
                                    "ffffffff810aa100 w arch_q_exit\n"
                                    "ffffffff810aa200 V arch_data\n"
                                    "ffffffff810aa300 B arch_bss\n"},
                                   {"arch_*"});
  EXPECT_THAT(TargetNames(r), ElementsAre("arch_q_init", "arch_q_exit"));
}

TEST(BugCases, BugCase22_SeveralNamesOnOneAddress) {
  const std::string text =
      "ffffffff816b2340 t hash2_local\n"
      "ffffffff816b2340 T hash2_generic\n"
      "ffffffff816b2340 W hash2\n";
  const std::string list = "ffffffff816b2344 hash2_local\n";
  const Resolution glob = MustResolve({text, list}, {"hash2*"});
  ASSERT_EQ(glob.targets().size(), 1u);
  EXPECT_EQ(glob.targets()[0].name, "hash2_generic");
  EXPECT_THAT(glob.targets()[0].aliases, ElementsAre("hash2", "hash2_local"));
  EXPECT_THAT(glob.omissions(), IsEmpty());
  // The name that was asked for stands in front.
  const Resolution exact = MustResolve({text, list}, {"hash2"});
  ASSERT_EQ(exact.targets().size(), 1u);
  EXPECT_EQ(exact.targets()[0].name, "hash2");
  EXPECT_EQ(exact.targets()[0].type, 'W');
  EXPECT_THAT(exact.targets()[0].aliases,
              ElementsAre("hash2_generic", "hash2_local"));
}

}  // namespace
}  // namespace ksweep
