// What happens when a list is missing, hidden, or does not fit the others.

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "ksweep/status.h"
#include "selftests/unit/resolve/resolve_fixture.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Lists;
using testing::MustResolve;
using testing::OmissionsOf;
using testing::TargetNames;
using testing::TargetsOf;
using testing::UnmatchedOf;

constexpr char kShown[] =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000100 T vfs_q\n";

constexpr char kHidden[] =
    "0000000000000000 T _stext\n"
    "0000000000000000 t vfs_q\n"
    "0000000000000000 t twice_q\n"
    "0000000000000000 t twice_q\n"
    "0000000000000000 t notrace_q\n"
    "0000000000000000 t twice_q\t[m]\n"
    "0000000000000000 t mod_q\t[m]\n";

TEST(HiddenAddresses, AreTakenFromTheListWithAddresses) {
  const Resolution r = MustResolve({kHidden,
                                    "ffffffff81000004 vfs_q\n"
                                    "ffffffff81000100 twice_q\n"
                                    "ffffffffc0000204 twice_q [m]\n"
                                    "ffffffffc0000100 mod_q [m]\n"},
                                   {"*_q"});
  EXPECT_FALSE(r.by_name());
  EXPECT_EQ(r.stats().addresses, AddressState::kHidden);
  EXPECT_THAT(
      TargetsOf(r),
      ElementsAre("vfs_q@ffffffff81000000", "twice_q@ffffffff81000100",
                  "m:mod_q@ffffffffc0000100", "m:twice_q@ffffffffc0000200"));
  EXPECT_THAT(OmissionsOf(r),
              ElementsAre("notrace_q NotTraceable", "twice_q NotTraceable"));
  EXPECT_EQ((*r.FindByIp(0xffffffffc0000200))->name, "twice_q");
}

TEST(HiddenAddresses, ByNameOnlyUniqueOnes) {
  const Resolution r = MustResolve(
      {kHidden, "none", "vfs_q\ntwice_q\ntwice_q\ntwice_q [m]\nmod_q [m]\n"},
      {"*_q", "m:twice_q"});
  EXPECT_TRUE(r.by_name());
  EXPECT_THAT(TargetsOf(r), ElementsAre("vfs_q@0", "m:mod_q@0"));
  EXPECT_THAT(
      OmissionsOf(r),
      ElementsAre("notrace_q NotTraceable", "twice_q AddressesHidden",
                  "twice_q AddressesHidden", "twice_q AddressesHidden"));
  EXPECT_THAT(UnmatchedOf(r),
              ElementsAre("m:twice_q AddressesHidden [twice_q]"));
}

TEST(HiddenAddresses, NamesOfOtherOwnersCountEvenIfNotAskedFor) {
  const Resolution r = MustResolve(
      {kHidden, "none", "twice_q\ntwice_q\ntwice_q [m]\nmod_q [m]\n"}, {"m:*"});
  EXPECT_THAT(TargetsOf(r), ElementsAre("m:mod_q@0"));
  EXPECT_THAT(OmissionsOf(r), ElementsAre("twice_q AddressesHidden"));
}

TEST(HiddenAddresses, NoListAtAll) {
  const Resolution r =
      MustResolve({kHidden, "none"}, {"vfs_q", "twice_q", "0x1000"});
  EXPECT_TRUE(r.by_name());
  ASSERT_THAT(TargetsOf(r), ElementsAre("vfs_q@0"));
  EXPECT_TRUE(r.targets()[0].untested);
  EXPECT_THAT(UnmatchedOf(r), ElementsAre("twice_q AddressesHidden [twice_q]",
                                          "0x1000 NotFound []"));
}

TEST(HiddenAddresses, PerfKprobesNeedAddresses) {
  ResolveOptions perf;
  perf.kinds = {Kind::kKprobe};
  EXPECT_THAT(OmissionsOf(MustResolve({kHidden}, {"vfs_q"}, perf)),
              ElementsAre("vfs_q AddressesHidden"));
}

TEST(PlainList, CountsOnlyTheOwnersCopies) {
  const std::string text = "ffffffff81000000 t f\nffffffffc0000000 t f\t[m]\n";
  EXPECT_THAT(TargetsOf(MustResolve({text, "none", "f [m]\n"}, {"f"})),
              ElementsAre("m:f@ffffffffc0000000"));
}

TEST(PlainList, AnAliasCanBeTheOneListed) {
  const std::string text =
      "ffffffff81000000 T shown\nffffffff81000000 t asked\n"
      "ffffffff81000100 t shown_twice\n"
      "ffffffff81000200 T shown_twice\nffffffff81000200 t other\n";
  EXPECT_THAT(TargetNames(MustResolve({text, "none", "shown\n"}, {"asked"})),
              ElementsAre("asked"));
  // One of the two is in the list, and the alias does not tell which.
  EXPECT_THAT(
      OmissionsOf(MustResolve({text, "none", "shown_twice\n"}, {"other"})),
      ElementsAre("other Undecidable"));
}

TEST(PlainList, AddressRequestsCountCopiesThatDoNotMatch) {
  const std::string text =
      "ffffffff81000000 t f\nffffffff81000100 t f\nffffffff81000200 t g\n";
  const testing::Lists lists = {text, "none", "f\ng\n"};
  EXPECT_THAT(OmissionsOf(MustResolve(lists, {"0xffffffff81000100"})),
              ElementsAre("f Undecidable"));
  EXPECT_THAT(TargetNames(MustResolve(lists, {"0xffffffff81000200"})),
              ElementsAre("g"));
}

TEST(FilterList, LocationsBelongToTheRightFunction) {
  const std::string text =
      "ffffffff81000000 t tiny_notrace\n"
      "ffffffff81000008 t behind\n"
      "ffffffff81000100 t same\n"
      "ffffffff81000200 t same\n"
      "ffffffffc0000000 t in_m\t[m]\n";
  const Resolution r = MustResolve({text,
                                    "ffffffff81000008 behind\n"
                                    "ffffffff81000204 same\n"
                                    // More than 8 bytes away.
                                    "ffffffff81000109 same\n"
                                    // Another owner.
                                    "ffffffffc0000000 in_m\n"},
                                   {"*"});
  EXPECT_THAT(TargetsOf(r),
              ElementsAre("behind@ffffffff81000008", "same@ffffffff81000200"));
  EXPECT_THAT(OmissionsOf(r),
              ElementsAre("tiny_notrace NotTraceable", "same NotTraceable",
                          "in_m NotTraceable"));
  ASSERT_EQ(r.stats().unjoined.size(), 2u);
  EXPECT_EQ(r.stats().unjoined[0].location, 0xffffffff81000109u);
  EXPECT_EQ(r.stats().unjoined[1].name, "in_m");
}

TEST(FilterList, EntriesInNoOrderAreJoined) {
  const std::string text =
      "ffffffff81000000 t a\nffffffff81000100 t b\nffffffff81000200 t c\n";
  EXPECT_EQ(MustResolve({text,
                         "ffffffff81000200 c\nffffffff81000000 a\n"
                         "ffffffff81000104 b\n"},
                        {"*"})
                .targets()
                .size(),
            3u);
}

TEST(Addresses, StartOrFtraceLocation) {
  const testing::Lists lists = {
      "ffffffff81000000 t f\nffffffff81000100 t g\nffffffff81000200 d data\n",
      "ffffffff81000004 f\nffffffff81000100 g\n"};
  EXPECT_THAT(TargetNames(MustResolve(
                  lists, {"0xffffffff81000000", "0xffffffff81000100"})),
              ElementsAre("f", "g"));
  EXPECT_THAT(TargetNames(MustResolve(lists, {"0xffffffff81000004"})),
              ElementsAre("f"));
  const Resolution none = MustResolve(
      lists,
      {"0xffffffff81000104", "0xffffffff81000050", "0xffffffff81000200"});
  EXPECT_THAT(none.targets(), IsEmpty());
  EXPECT_THAT(none.omissions(), IsEmpty());
  EXPECT_THAT(UnmatchedOf(none),
              ElementsAre("0xffffffff81000104 NotFound []",
                          "0xffffffff81000050 NotFound []",
                          "0xffffffff81000200 NotAFunction [data]"));
}

TEST(Sources, NoKallsymsIsAnErrorWithRemedy) {
  testing::FakeKernel kernel;
  absl::StatusOr<Resolution> r =
      Resolve(testing::ParseAll({"a"}), kernel.files());
  EXPECT_EQ(r.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(r.status().message()), HasSubstr("proc/kallsyms"));
  kernel.Write(KernelFile::kKallsyms, "this is\nno symbol table\n");
  r = Resolve(testing::ParseAll({"a"}), kernel.files());
  EXPECT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Sources, MalformedLinesAreCountedWithNumbers) {
  const Resolution r = MustResolve({"ffffffff81000000 t a\n"
                                    "garbage\n"
                                    "fffffffg81000000 t b\n"
                                    "\n"
                                    "ffffffff81000100 t c\n"
                                    "ffffffff81000200 t d\t[m\n",
                                    "ffffffff81000000 a\nffffffff81000100 c\n"},
                                   {"*"});
  EXPECT_THAT(TargetNames(r), ElementsAre("a", "c"));
  EXPECT_EQ(r.stats().lines, 6u);
  EXPECT_EQ(r.stats().malformed, 4u);
  EXPECT_THAT(r.stats().malformed_lines, ElementsAre(2, 3, 4, 6));
}

TEST(Sources, OverridesAndDisabledFiles) {
  testing::FakeKernel kernel, other;
  testing::WriteLists({"ffffffff81000000 t a\n"}, &kernel);
  testing::WriteLists({"ffffffff81000000 t b\n"}, &other);
  KernelFiles files = kernel.files();
  files.Override(KernelFile::kKallsyms, other.Path(KernelFile::kKallsyms));
  files.Disable(KernelFile::kFilterFunctionsAddrs);
  absl::StatusOr<Resolution> r = Resolve(testing::ParseAll({"b"}), files);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE(r->targets()[0].untested);
}

TEST(FilterList, WithoutAFunctionIsSaid) {
  for (const Lists& lists :
       {Lists{kShown, "", "none"}, Lists{kShown, "none", ""},
        Lists{kShown, "no list\n\n", "none"}}) {
    const Resolution r = MustResolve(lists, {"vfs_q"});
    EXPECT_THAT(r.targets(), IsEmpty());
    EXPECT_THAT(r.stats().notes,
                ::testing::Contains(HasSubstr("lists no function")));
  }
}

// Opens `left` files at the most while it lives.
class ScopedDescriptors {
 public:
  explicit ScopedDescriptors(rlim_t left) {
    const int next = dup(STDERR_FILENO);  // the lowest that is free
    close(next);
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit low = {static_cast<rlim_t>(next) + left, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  }
  ~ScopedDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

// A list that cannot be opened for want of descriptors is not taken for one
// that is not there, which would let everything through.
TEST(OutOfDescriptors, IsNoMissingList) {
  testing::FakeKernel kernel;
  testing::WriteLists({kShown}, &kernel);
  ResolveOptions single, trampoline;
  single.kinds = {Kind::kKprobe};
  trampoline.kinds = {Kind::kFentry};
  for (const ResolveOptions& options : {ResolveOptions(), single, trampoline}) {
    for (const rlim_t left : {0, 1}) {
      absl::Status status;
      {
        const ScopedDescriptors few(left);
        status = Resolve(testing::ParseAll({"vfs_q"}), kernel.files(), options)
                     .status();
      }
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      EXPECT_EQ(ErrnoOf(status), EMFILE);
      EXPECT_THAT(std::string(status.message()),
                  ::testing::AllOf(HasSubstr(kernel.root()),
                                   HasSubstr("RLIMIT_NOFILE")));
    }
  }
}

}  // namespace
}  // namespace ksweep
