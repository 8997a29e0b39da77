#include "lib/attach/programs/choose_kind.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "ksweep/attach.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/unique_fd.h"
#include "selftests/testing/bpf_elf.h"
#include "selftests/testing/fake_kernel.h"
#include "selftests/testing/fake_perf.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::FakeKernel;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Kind kAllKinds[] = {
    Kind::kKprobeMulti, Kind::kKretprobeMulti, Kind::kKprobeSession,
    Kind::kKprobe,      Kind::kKretprobe,      Kind::kFentry,
    Kind::kFexit,       Kind::kFsession,       Kind::kFentryMulti,
    Kind::kFexitMulti,  Kind::kFsessionMulti,
};

ProgramShape Unprepared(std::string section) {
  return {.name = "prog", .section = std::move(section)};
}

ProgramShape Fixed(std::string section, uint32_t prog_type,
                   uint32_t attach_type) {
  return {.name = "prog",
          .section = std::move(section),
          .prog_type = prog_type,
          .attach_type = attach_type,
          .fixed = true};
}

struct PreferenceCase {
  const char* section;
  std::vector<Kind> want;
};

TEST(KindsFor, Preference) {
  const PreferenceCase kCases[] = {
      {"kprobe", {Kind::kKprobeMulti, Kind::kKprobe}},
      {"kprobe/vfs_read", {Kind::kKprobeMulti, Kind::kKprobe}},
      {"?kprobe.multi/vfs_*", {Kind::kKprobeMulti, Kind::kKprobe}},
      {"ksyscall/openat", {Kind::kKprobeMulti, Kind::kKprobe}},
      {"ours", {Kind::kKprobeMulti, Kind::kKprobe}},
      {"", {Kind::kKprobeMulti, Kind::kKprobe}},
      {"kretprobe", {Kind::kKretprobeMulti, Kind::kKretprobe}},
      {"kretprobe.multi/x", {Kind::kKretprobeMulti, Kind::kKretprobe}},
      {"kretsyscall/x", {Kind::kKretprobeMulti, Kind::kKretprobe}},
      {"kprobe.session", {Kind::kKprobeSession}},
      {"?kprobe.session/x", {Kind::kKprobeSession}},
      {"fentry/x", {Kind::kFentry}},
      {"fexit/x", {Kind::kFexit}},
      {"fsession", {Kind::kFsession}},
      {"fentry.multi", {Kind::kFentryMulti, Kind::kFentry}},
      {"fexit.multi/x", {Kind::kFexitMulti, Kind::kFexit}},
      {"fsession.multi", {Kind::kFsessionMulti, Kind::kFsession}},
  };
  for (const PreferenceCase& c : kCases) {
    EXPECT_THAT(KindsFor(Unprepared(c.section)), ElementsAreArray(c.want))
        << c.section;
  }
}

struct FixedCase {
  const char* section;
  uint32_t prog_type;
  uint32_t attach_type;
  Kind want;
};

constexpr FixedCase kFixedCases[] = {
    {"kprobe.multi", 2, 42, Kind::kKprobeMulti},
    {"kprobe", 2, 42, Kind::kKprobeMulti},
    {"ours", 2, 42, Kind::kKprobeMulti},
    {"kretprobe", 2, 42, Kind::kKretprobeMulti},
    {"kretprobe.multi", 2, 42, Kind::kKretprobeMulti},
    {"kprobe", 2, 56, Kind::kKprobeSession},
    {"kprobe.session", 2, 42, Kind::kKprobeMulti},
    {"kprobe.multi", 2, 0, Kind::kKprobe},
    {"kretprobe/x", 2, 0, Kind::kKretprobe},
    {"fentry/x", 26, 24, Kind::kFentry},
    {"fexit/x", 26, 25, Kind::kFexit},
    {"ours", 26, 58, Kind::kFsession},
    {"fentry.multi", 26, 59, Kind::kFentryMulti},
    {"fentry", 26, 60, Kind::kFexitMulti},
    {"fsession.multi", 26, 61, Kind::kFsessionMulti},
};

TEST(KindsFor, BugCase55_AFixedProgramHasTheKindItWasMadeFor) {
  for (const FixedCase& c : kFixedCases) {
    EXPECT_THAT(KindsFor(Fixed(c.section, c.prog_type, c.attach_type)),
                ElementsAre(c.want))
        << c.section << " " << c.attach_type;
  }
  EXPECT_THAT(KindsFor(Fixed("uprobe.multi", 2, 48)), IsEmpty());
  EXPECT_THAT(KindsFor(Fixed("xdp", 6, 0)), IsEmpty());
}

// A kernel that takes no attach type but those it is told to, and counts.
class FakeLoads : public BpfSys {
 public:
  int link_err = EFAULT;
  std::vector<int> cmds;

  int Bpf(int cmd, void*, size_t) override {
    cmds.push_back(cmd);
    return cmd == kBpfProgLoad ? UniqueFd(dup(2)).Release() : -link_err;
  }
};

class ChooseKindTest : public ::testing::Test {
 protected:
  ChooseKindTest() : features_(bpf_, perf_, kernel_.files()) {
    fit_.target_cnt = 10;
    for (Kind kind : kAllKinds) Fits(kind, 10);
  }

  void Fits(Kind kind, uint64_t cnt) {
    fit_.asked.Add(kind);
    fit_.fitting[static_cast<size_t>(kind)] = cnt;
  }

  KindChoice Choose(const ProgramShape& shape) {
    const absl::StatusOr<KindChoice> choice =
        ChooseKind(shape, &fit_, features_);
    EXPECT_TRUE(choice.ok()) << choice.status();
    return choice.ok() ? *choice : KindChoice();
  }

  FakeLoads bpf_;
  FakePerf perf_;
  FakeKernel kernel_;
  Features features_;
  KindFit fit_;
};

TEST_F(ChooseKindTest, TheBestThatTheKernelHas) {
  const KindChoice choice = Choose(Unprepared("kprobe"));
  EXPECT_EQ(choice.kind, Kind::kKprobeMulti);
  EXPECT_EQ(choice.why, "kprobe.multi, which 10 of 10 targets fit");
  EXPECT_EQ(bpf_.cmds.size(), 2u);
  EXPECT_EQ(perf_.calls(), 0u);
}

TEST_F(ChooseKindTest, SingleKprobesWithoutFprobe) {
  bpf_.link_err = EOPNOTSUPP;
  Fits(Kind::kKprobe, 7);
  const KindChoice choice = Choose(Unprepared("kprobe.multi"));
  EXPECT_EQ(choice.kind, Kind::kKprobe);
  EXPECT_EQ(
      choice.why,
      "kprobe, which 7 of 10 targets fit; not kprobe.multi (CONFIG_FPROBE "
      "is off: the kernel answered EOPNOTSUPP)");
  EXPECT_EQ(Choose(Unprepared("kretprobe")).kind, Kind::kKretprobe);
  // Of the last kind nothing is asked.
  EXPECT_EQ(perf_.calls(), 0u);
}

TEST_F(ChooseKindTest, NothingIsAskedWithoutAChoice) {
  EXPECT_EQ(Choose(Unprepared("kprobe.session")).kind, Kind::kKprobeSession);
  EXPECT_EQ(Choose(Unprepared("fentry/x")).kind, Kind::kFentry);
  EXPECT_EQ(Choose(Fixed("kprobe.multi", 2, 42)).kind, Kind::kKprobeMulti);
  fit_.asked.Remove(Kind::kKprobe);
  EXPECT_EQ(Choose(Unprepared("kprobe")).kind, Kind::kKprobeMulti);
  EXPECT_THAT(bpf_.cmds, IsEmpty());
  EXPECT_EQ(perf_.calls(), 0u);
}

TEST_F(ChooseKindTest, WhatTheResolutionLeaves) {
  fit_.asked.Remove(Kind::kKprobeMulti);
  KindChoice choice = Choose(Unprepared("kprobe"));
  EXPECT_EQ(choice.kind, Kind::kKprobe);
  EXPECT_THAT(choice.why, HasSubstr("; not kprobe.multi (not among "
                                    "ResolveOptions::kinds)"));
  Fits(Kind::kKprobeMulti, 0);
  choice = Choose(Unprepared("kprobe"));
  EXPECT_EQ(choice.kind, Kind::kKprobe);
  EXPECT_THAT(choice.why, HasSubstr("; not kprobe.multi (no target fits)"));
  EXPECT_THAT(bpf_.cmds, IsEmpty());
}

// Being refused permission is for the attach to say, of the best kind.
TEST_F(ChooseKindTest, NotPermittedIsNotNo) {
  bpf_.link_err = EPERM;
  EXPECT_EQ(Choose(Unprepared("kprobe")).kind, Kind::kKprobeMulti);
}

TEST_F(ChooseKindTest, BeforeAnythingIsResolved) {
  const absl::StatusOr<KindChoice> choice =
      ChooseKind(Unprepared("fexit.multi"), nullptr, features_);
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->kind, Kind::kFexitMulti);
  EXPECT_EQ(choice->why, "fexit.multi");
}

TEST_F(ChooseKindTest, NoneLeft) {
  fit_.asked = {Kind::kFentry};
  const absl::Status unasked =
      ChooseKind(Unprepared("kretprobe/x"), &fit_, features_).status();
  EXPECT_EQ(unasked.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(unasked.message()),
              HasSubstr("no kind to attach program 'prog' in "
                        "SEC(\"kretprobe/x\") as; not kretprobe.multi (not "
                        "among ResolveOptions::kinds); not kretprobe (not"));

  const absl::Status unknown =
      ChooseKind(Fixed("xdp", 6, 0), &fit_, features_).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("with type 6 and attach type 0, as; its types are of "
                        "none"));
}

TEST(ShapeOf, TellsPreparedProgramsFromOthers) {
  const std::string elf = BuildBpfElf({{"kprobe.multi", "prog"}});
  bpf_object* object = bpf_object__open_mem(elf.data(), elf.size(), nullptr);
  ASSERT_NE(object, nullptr);
  bpf_program* prog = bpf_object__find_program_by_name(object, "prog");

  ProgramShape shape = ShapeOf(*prog);
  EXPECT_EQ(shape.name, "prog");
  EXPECT_EQ(shape.section, "kprobe.multi");
  EXPECT_FALSE(shape.fixed);

  ASSERT_TRUE(PrepareProgram(prog, Kind::kKprobeSession).ok());
  shape = ShapeOf(*prog);
  EXPECT_TRUE(shape.fixed);
  EXPECT_EQ(shape.prog_type, kBpfProgTypeKprobe);
  EXPECT_EQ(shape.attach_type, kBpfTraceKprobeSession);
  EXPECT_THAT(KindsFor(shape), ElementsAre(Kind::kKprobeSession));
  bpf_object__close(object);
}

TEST(FitOf, CountsTargetsByKind) {
  FakeKernel kernel;
  kernel.Write(KernelFile::kKallsyms,
               "ffffffff81000000 T _stext\n"
               "ffffffff81000100 T a_q\n"
               "ffffffff81000200 T b_q\n"
               "ffffffff81000300 T c_q\n"
               "ffffffff81900000 T _etext\n");
  kernel.Write(KernelFile::kFilterFunctionsAddrs,
               "ffffffff81000100 a_q\nffffffff81000300 c_q\n");
  ResolveOptions options;
  options.kinds = {Kind::kKprobeMulti, Kind::kKprobe};
  const absl::StatusOr<Resolution> resolution =
      Resolve({*Request::Parse("?_q")}, kernel.files(), options);
  ASSERT_TRUE(resolution.ok()) << resolution.status();
  const KindFit fit = FitOf(*resolution);
  EXPECT_EQ(fit.target_cnt, 3u);
  EXPECT_EQ(fit.FittingFor(Kind::kKprobeMulti), 2u);
  EXPECT_EQ(fit.FittingFor(Kind::kKprobe), 3u);
  EXPECT_EQ(fit.FittingFor(Kind::kFentry), 0u);
  EXPECT_TRUE(fit.asked == options.kinds);
}

}  // namespace
}  // namespace ksweep
