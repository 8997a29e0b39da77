// Several programs for one attachment, on kernels that lack some kinds.

#include "lib/attach/programs/prepare_several.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "ksweep/attach.h"
#include "ksweep/features.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/unique_fd.h"
#include "selftests/testing/bpf_elf.h"
#include "selftests/testing/fake_kernel.h"
#include "selftests/testing/fake_perf.h"
#include "selftests/unit/attach/attach_fixture.h"

namespace ksweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FakeKernel;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Knows all attach types but some, and takes what it knows for the only wrong
// thing in it, as the probes want it.
class FakeTypes : public BpfSys {
 public:
  std::set<uint32_t> no_load;  // attach types
  int link_err = EFAULT;

  int Bpf(int cmd, void* attr, size_t size) override {
    if (cmd != kBpfProgLoad) return -link_err;
    ProgLoadAttr load;
    EXPECT_EQ(size, sizeof(load));
    std::memcpy(static_cast<void*>(&load), attr, sizeof(load));
    if (no_load.count(load.expected_attach_type) != 0) return -EINVAL;
    return UniqueFd(dup(2)).Release();
  }
};

class PrepareSeveralTest : public ::testing::Test {
 protected:
  PrepareSeveralTest()
      : elf_(BuildBpfElf({{"ours/1", "a"}, {"ours/2", "b"}, {"ours/3", "c"}})),
        object_(bpf_object__open_mem(elf_.data(), elf_.size(), nullptr)),
        features_(bpf_, perf_, kernel_.files()) {}
  ~PrepareSeveralTest() override { bpf_object__close(object_); }

  bpf_program* prog(const char* name) {
    return bpf_object__find_program_by_name(object_, name);
  }

  absl::StatusOr<std::vector<KindProgram>> Prepare(
      const std::vector<WantedProgram>& programs,
      const Resolution* resolution = nullptr) {
    return PreparePrograms(programs, resolution, features_);
  }

  // "a" for the one kind, and "b" for the other.
  std::vector<WantedProgram> Two(Kind a, Kind b) {
    return {{a, prog("a")}, {b, prog("b")}};
  }

  void LackTracingMulti() {
    bpf_.no_load = {kBpfTraceFentryMulti, kBpfTraceFexitMulti,
                    kBpfTraceFsessionMulti};
  }

  FakeTypes bpf_;
  FakePerf perf_;
  FakeKernel kernel_;
  std::string elf_;
  bpf_object* object_;
  Features features_;
};

TEST_F(PrepareSeveralTest, AllWhereTheKernelHasThem) {
  const auto made = Prepare(Two(Kind::kFentryMulti, Kind::kKprobeMulti));
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->size(), 2u);
  for (const KindProgram& program : *made) {
    EXPECT_EQ(program.absent, "");
    EXPECT_TRUE(bpf_program__autoload(program.prog));
  }
  EXPECT_EQ(bpf_program__expected_attach_type(prog("a")),
            static_cast<bpf_attach_type>(kBpfTraceFentryMulti));
  EXPECT_EQ(bpf_program__expected_attach_type(prog("b")),
            static_cast<bpf_attach_type>(kBpfTraceKprobeMulti));
}

TEST_F(PrepareSeveralTest, WithoutTracingMultiThatOneIsNotLoaded) {
  LackTracingMulti();
  for (const auto& [multi, kprobe] : std::vector<std::pair<Kind, Kind>>{
           {Kind::kFentryMulti, Kind::kKprobeMulti},
           {Kind::kFsessionMulti, Kind::kKprobeSession}}) {
    SCOPED_TRACE(KindName(multi));
    bpf_object* object =
        bpf_object__open_mem(elf_.data(), elf_.size(), nullptr);
    bpf_program* a = bpf_object__find_program_by_name(object, "a");
    bpf_program* b = bpf_object__find_program_by_name(object, "b");
    const auto made = Prepare({{multi, a}, {kprobe, b}});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_THAT((*made)[0].absent, HasSubstr("Linux 7.2"));
    EXPECT_FALSE(bpf_program__autoload(a));
    EXPECT_EQ((*made)[1].absent, "");
    EXPECT_TRUE(bpf_program__autoload(b));
    EXPECT_EQ(bpf_program__type(b), BPF_PROG_TYPE_KPROBE);
    bpf_object__close(object);
  }
}

TEST_F(PrepareSeveralTest, NoneLeftIsAnErrorWithEachKind) {
  LackTracingMulti();
  bpf_.link_err = EOPNOTSUPP;
  const auto made = Prepare(Two(Kind::kFentryMulti, Kind::kKprobeMulti));
  EXPECT_EQ(made.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(made.status().message()),
              AllOf(HasSubstr("; fentry.multi: "), HasSubstr("Linux 7.2"),
                    HasSubstr("; kprobe.multi: CONFIG_FPROBE is off")));
  // As they were.
  EXPECT_TRUE(bpf_program__autoload(prog("a")));
  EXPECT_EQ(bpf_program__type(prog("b")), BPF_PROG_TYPE_UNSPEC);
}

// Entries without a program would be missed by nobody.
TEST_F(PrepareSeveralTest, NothingLeftForTheEntryIsAnError) {
  LackTracingMulti();
  const absl::Status at_entry =
      Prepare(Two(Kind::kFentryMulti, Kind::kKretprobeMulti)).status();
  EXPECT_EQ(at_entry.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(at_entry.message()),
              HasSubstr("at the entry of functions; fentry.multi: "));
  const absl::Status at_return =
      Prepare(Two(Kind::kKprobeMulti, Kind::kFexitMulti)).status();
  EXPECT_THAT(std::string(at_return.message()),
              HasSubstr("at the return of functions; fexit.multi: "));
  EXPECT_TRUE(bpf_program__autoload(prog("b")));
}

struct PreferenceCase {
  bool tracing_multi;
  bool session;
  std::vector<Kind> wanted;  // for a, b, c
  std::string loaded;        // their names
};

// A session and other kinds are for each other's place.
TEST_F(PrepareSeveralTest, ThePreferredStandsInTheWay) {
  const Kind trampoline = Kind::kFentryMulti, session = Kind::kKprobeSession,
             entry = Kind::kKprobeMulti, at_return = Kind::kKretprobeMulti;
  const PreferenceCase cases[] = {
      {true, true, {trampoline, session, entry}, "ac"},
      {false, true, {trampoline, session, entry}, "b"},
      {false, false, {trampoline, session, entry}, "c"},
      {true, true, {session, entry, at_return}, "a"},
      {true, false, {session, entry, at_return}, "bc"},
      {true, false, {Kind::kFsessionMulti, trampoline, entry}, "a"},
      {false, true, {Kind::kFsessionMulti, trampoline, session}, "c"},
  };
  for (const PreferenceCase& c : cases) {
    SCOPED_TRACE(c.loaded);
    FakeTypes bpf;
    if (!c.tracing_multi) {
      bpf.no_load = {kBpfTraceFentryMulti, kBpfTraceFexitMulti,
                     kBpfTraceFsessionMulti};
    }
    if (!c.session) bpf.no_load.insert(kBpfTraceKprobeSession);
    Features features(bpf, perf_, kernel_.files());
    bpf_object* object =
        bpf_object__open_mem(elf_.data(), elf_.size(), nullptr);
    std::vector<WantedProgram> wanted;
    for (size_t i = 0; i < c.wanted.size(); ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      wanted.push_back({c.wanted[i], bpf_object__find_program_by_name(
                                         object, name.c_str())});
    }
    const auto made = PreparePrograms(wanted, nullptr, features);
    ASSERT_TRUE(made.ok()) << made.status();
    std::string loaded;
    for (const KindProgram& program : *made) {
      EXPECT_EQ(program.absent.empty(), bpf_program__autoload(program.prog));
      if (program.absent.empty()) loaded += bpf_program__name(program.prog);
    }
    EXPECT_EQ(loaded, c.loaded);
    bpf_object__close(object);
  }
  const auto made = Prepare(Two(Kind::kFentryMulti, Kind::kKprobeSession));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT((*made)[1].absent,
              HasSubstr("not beside fentry.multi, which comes first"));
}

TEST_F(PrepareSeveralTest, NotPermittedCountsAsThere) {
  bpf_.link_err = EPERM;
  const auto made = Prepare(Two(Kind::kFentryMulti, Kind::kKprobeMulti));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)[0].absent, "");
  EXPECT_EQ((*made)[1].absent, "");
}

TEST_F(PrepareSeveralTest, PerFunctionKindsNeedATarget) {
  ResolutionText text({Kind::kFentry, Kind::kKprobeMulti});
  text.Add(0).kinds = {Kind::kKprobeMulti};
  const Resolution resolution = text.Build();
  bpf_.link_err = EPERM;
  const auto made =
      Prepare(Two(Kind::kFentry, Kind::kKprobeMulti), &resolution);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)[0].absent, "no target fits");
  EXPECT_EQ((*made)[1].absent, "");
}

TEST_F(PrepareSeveralTest, WrongProgramsAreRefusedUnchanged) {
  EXPECT_EQ(Prepare({}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Prepare({{Kind::kKprobeMulti, nullptr}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      Prepare(Two(Kind::kKprobeMulti, Kind::kKprobeMulti)).status().code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(bpf_program__type(prog("a")), BPF_PROG_TYPE_UNSPEC);
}

}  // namespace
}  // namespace ksweep
