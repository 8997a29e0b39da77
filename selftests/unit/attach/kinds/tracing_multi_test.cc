#include "lib/attach/kinds/tracing_multi.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "ksweep/status.h"
#include "lib/base/bpf_sys.h"
#include "selftests/unit/attach/tracing_fixture.h"

namespace ksweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TracingMultiTest : public TracingFixture {
 protected:
  explicit TracingMultiTest(Kind kind = Kind::kFentryMulti,
                            uint32_t attach_type = kBpfTraceFentryMulti)
      : TracingFixture(kind, attach_type) {}

  // Two of the core and of each module, by the same ids.
  Resolution OfThreeObjects() {
    ResolutionText text({kind_});
    for (std::string_view module : {"", "ant", "zoo"}) {
      for (size_t i : {0, 1}) Add(text, i, module);
    }
    return text.Build();
  }
};

class TracingMultiAtReturnTest : public TracingMultiTest {
 protected:
  TracingMultiAtReturnTest()
      : TracingMultiTest(Kind::kFexitMulti, kBpfTraceFexitMulti) {}
};

TEST_F(TracingMultiTest, OneCallForAllOfTheCore) {
  const auto attachment = Attach(Core(100));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(fake_.calls(), 1u);
  ASSERT_EQ(fake_.links().size(), 1u);
  const FakeTracingSys::Link link = fake_.links()[0];
  EXPECT_EQ(link.attach_type, kBpfTraceFentryMulti);
  EXPECT_EQ(link.ids.front(), IdOf(0));
  EXPECT_EQ(link.ids.size(), 100u);
  EXPECT_EQ(attachment->Report().attached, 100u);
  EXPECT_EQ(CountOpenFds(), fds_before_ + 1);
}

TEST_F(TracingMultiTest, CookiesStayWithTheirIds) {
  ResolutionText text({kind_});
  // In address order, as ever, and not in the order of ids.
  for (size_t i : {0, 1, 2, 3}) Add(text, i).btf_id = IdOf(3 - i);
  const auto attachment = Attach(text.Build());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  const FakeTracingSys::Link link = fake_.links()[0];
  EXPECT_THAT(link.ids, ElementsAre(IdOf(0), IdOf(1), IdOf(2), IdOf(3)));
  EXPECT_THAT(link.cookies, ElementsAre(3, 2, 1, 0));
}

TEST_F(TracingMultiTest, EachObjectHasItsLinkAndItsProgram) {
  {
    const auto attachment = Attach(OfThreeObjects());
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    const std::vector<FakeTracingSys::Link> links = fake_.links();
    ASSERT_EQ(links.size(), 3u);
    const uint32_t objects[] = {0, ant_, zoo_};
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(links[i].object, objects[i]);
      EXPECT_THAT(links[i].ids, ElementsAre(IdOf(0), IdOf(1)));
      EXPECT_THAT(links[i].cookies, ElementsAre(2 * i, 2 * i + 1));
    }
    // The links alone hold the programs.
    EXPECT_EQ(CountOpenFds(), fds_before_ + 3);
  }
  EXPECT_EQ(CountOpenFds(), fds_before_);

  const std::vector<FakeTracingSys::Program> loads = fake_.loads();
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0].attach_type, kBpfTraceFentryMulti);
  EXPECT_EQ(loads[0].btf_id, 0u);
  EXPECT_EQ(loads[0].license, "Dual BSD/GPL");
  EXPECT_EQ(loads[0].name, "a_program_with_");
  EXPECT_EQ(loads[0].insn_cnt, 2u);
}

TEST_F(TracingMultiTest, TheKernelsObjectsAreListedOnce) {
  ASSERT_TRUE(Attach(OfThreeObjects()).ok());
  // The core's, two modules', a program's, and the end.
  EXPECT_EQ(fake_.calls(kBpfBtfGetNextId), 5u);
}

TEST_F(TracingMultiTest, LicenseAndSleepFollowTheProgram) {
  program_.image->gpl_compatible = false;
  program_.image->prog_flags = BPF_F_SLEEPABLE;
  ASSERT_TRUE(Attach(OfThreeObjects()).ok());
  EXPECT_EQ(fake_.loads()[0].license, "Proprietary");
  EXPECT_EQ(fake_.loads()[0].prog_flags, BPF_F_SLEEPABLE);
}

// A program can be linked only once to a function.
TEST_F(TracingMultiTest, SecondCookiesHaveAProgramOfTheirOwn) {
  const std::vector<uint64_t> more = {8};
  std::vector<Request> requests = {Request::Address(AddrOf(0))};
  requests[0].set_cookie(7);
  ResolutionText text({kind_}, requests);
  Add(text, 0).cookie = 7;
  text.builder().targets().back().more_cookies = more;
  const auto attachment = Attach(text.Build());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  ASSERT_EQ(fake_.links().size(), 2u);
  EXPECT_THAT(fake_.links()[0].cookies, ElementsAre(7));
  EXPECT_THAT(fake_.links()[1].cookies, ElementsAre(8));
  EXPECT_NE(fake_.links()[0].program, fake_.links()[1].program);
}

TEST_F(TracingMultiTest, FailureAtEachStepLeavesNothing) {
  ASSERT_TRUE(Attach(OfThreeObjects()).ok());
  const uint32_t call_cnt = fake_.calls();
  for (uint32_t call = 0; call < call_cnt; ++call) {
    fake_.FailCall(fake_.calls() + call, EPERM);
    const absl::Status status = AttachError(OfThreeObjects());
    EXPECT_EQ(ErrnoOf(status), EPERM) << call;
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << call;
  }
}

TEST_F(TracingMultiTest, TheVerifiersLastLineIsInTheError) {
  fake_.options().has_multi = false;
  const absl::Status status = AttachError(OfThreeObjects());
  EXPECT_EQ(ErrnoOf(status), EINVAL);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("loading program 'a_program_with_a_long_name' "
                              "once more"),
                    HasSubstr("the kernel says 'the last line'")));
}

TEST_F(TracingMultiTest, AModuleThatIsGoneIsRefusedWhole) {
  fake_.RemoveModule(ant_);
  options_.on_refused = OnRefused::kSkip;
  auto attachment = Attach(OfThreeObjects());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(fake_.links().size(), 2u);
  ASSERT_EQ(attachment->refused().size(), 2u);
  EXPECT_EQ(attachment->refused()[0].slot, 2u);
  EXPECT_EQ(attachment->refused()[0].function, "func_0 [ant]");
  EXPECT_EQ(attachment->refused()[0].err, ENOENT);
  EXPECT_THAT(attachment->refused()[0].reason, HasSubstr("module is gone"));

  ASSERT_TRUE(attachment->Detach().ok());
  options_.on_refused = OnRefused::kFail;
  EXPECT_EQ(AttachError(OfThreeObjects()).code(), absl::StatusCode::kNotFound);
}

TEST_F(TracingMultiTest, ProgramsThatCannotBeLoadedOnceMore) {
  auto& insns = program_.image->insns;
  insns.insert(
      insns.begin(),
      {{BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_FUNC, 0, 5}, {}});
  const absl::Status callbacks = AttachError(OfThreeObjects());
  EXPECT_EQ(callbacks.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(callbacks.message()), HasSubstr("callbacks"));
  // The core alone needs no second load.
  EXPECT_TRUE(Attach(Core(3)).ok());

  insns.front() = {BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 1, 77};
  const absl::Status kfuncs = AttachError(OfThreeObjects());
  EXPECT_EQ(kfuncs.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(kfuncs.message()), HasSubstr("kfuncs of a module"));

  program_.image = nullptr;
  const absl::Status descriptor = AttachError(OfThreeObjects());
  EXPECT_EQ(descriptor.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(descriptor.message()),
              HasSubstr("for functions of module ant"));
}

struct ErrnoCase {
  int err;
  absl::StatusCode code;
  std::string_view text;
};

constexpr ErrnoCase kCallErrors[] = {
    {EPERM, absl::StatusCode::kPermissionDenied, "CAP_PERFMON"},
    {EACCES, absl::StatusCode::kPermissionDenied, "security module"},
    {ENODEV, absl::StatusCode::kFailedPrecondition, "ftrace"},
    {EBADF, absl::StatusCode::kInvalidArgument, "not open"},
    {EMFILE, absl::StatusCode::kResourceExhausted, "RLIMIT_NOFILE"},
    {ENFILE, absl::StatusCode::kResourceExhausted, "fs.file-max"},
    {ENOSYS, absl::StatusCode::kUnimplemented, "CONFIG_BPF_SYSCALL"},
};

TEST_F(TracingMultiTest, ErrorsOfTheCallEndItAtOnce) {
  for (const ErrnoCase& c : kCallErrors) {
    const uint32_t before = fake_.calls();
    fake_.FailCall(before, c.err);
    const absl::Status status = AttachError(Core(10));
    EXPECT_EQ(fake_.calls(), before + 1) << status;
    EXPECT_EQ(ErrnoOf(status), c.err);
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("fentry.multi link to 10 functions"),
                      HasSubstr(std::string(c.text))));
  }
}

TEST_F(TracingMultiTest, WithoutDirectCallsItIsTheCall) {
  fake_.options().has_direct_calls = false;
  const absl::Status status = AttachError(Core(100));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ErrnoOf(status), EOPNOTSUPP);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no direct calls from ftrace"));
  EXPECT_EQ(fake_.calls(), 1 + kMaxProbes);
}

TEST_F(TracingMultiTest, TheSameProgramTwiceIsTheCall) {
  const auto attachment = Attach(Core(40));
  ASSERT_TRUE(attachment.ok());
  const absl::Status status = Attach(Core(40)).status();
  EXPECT_EQ(ErrnoOf(status), EBUSY);
  EXPECT_THAT(std::string(status.message()), HasSubstr("this very program"));
  EXPECT_EQ(fake_.OpenLinks().size(), 1u);
}

struct RefusalCase {
  int err;
  void (*spoil)(FakeTracingSys::Func&);
  std::string_view reason;
};

const RefusalCase kRefusals[] = {
    {EINVAL, [](FakeTracingSys::Func& f) { f.no_trampoline = true; },
     "lets no trampoline on it"},
    {ENOENT, [](FakeTracingSys::Func& f) { f.traceable = false; },
     "not a function that ftrace can trace"},
    {EOPNOTSUPP, [](FakeTracingSys::Func& f) { f.wide_return = true; },
     "more than the 8 bytes"},
    {E2BIG, [](FakeTracingSys::Func& f) { f.foreign_programs = 38; },
     "as many BPF programs"},
};

TEST_F(TracingMultiAtReturnTest, RefusedFunctionsAreIsolated) {
  options_.on_refused = OnRefused::kSkip;
  for (size_t i = 0; i < std::size(kRefusals); ++i) {
    kRefusals[i].spoil(fake_.AddFunc(0, IdOf(20 * i + 11)));
  }
  const auto attachment = Attach(Core(100));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  ASSERT_EQ(attachment->refused().size(), std::size(kRefusals));
  for (size_t i = 0; i < std::size(kRefusals); ++i) {
    const RefusedFunction& refused = attachment->refused()[i];
    EXPECT_EQ(refused.slot, 20 * i + 11);
    EXPECT_EQ(refused.err, kRefusals[i].err);
    EXPECT_EQ(refused.kind, Kind::kFexitMulti);
    EXPECT_THAT(refused.reason, HasSubstr(std::string(kRefusals[i].reason)));
  }
  // 2k(⌈log2(n/k)⌉ + 1) + 3
  EXPECT_LE(fake_.calls(), 2u * 4 * (5 + 1) + 3);
  const std::vector<FakeTracingSys::Link> open = fake_.OpenLinks();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].ids.size(), 96u);
  for (size_t i = 0; i < open[0].ids.size(); ++i) {
    EXPECT_EQ(open[0].cookies[i], open[0].ids[i] - IdOf(0));
  }
}

TEST_F(TracingMultiTest, ARefusedOneFailsTheWholeByDefault) {
  fake_.AddFunc(0, IdOf(50)).no_trampoline = true;
  const absl::Status status = AttachError(Core(100));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("refuses 1 of 100 functions for fentry.multi: func_50 "
                        "(the kernel lets no trampoline on it"));
}

// Of a module every function may be refused: that the call works is known.
TEST_F(TracingMultiTest, AModuleWhoseFunctionsAreAllRefused) {
  options_.on_refused = OnRefused::kSkip;
  for (size_t i : {0, 1}) fake_.AddFunc(ant_, IdOf(i)).traceable = false;
  fake_.AddFunc(zoo_, IdOf(0)).traceable = false;
  const auto attachment = Attach(OfThreeObjects());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(attachment->refused().size(), 3u);
  EXPECT_EQ(attachment->Report().attached, 3u);
}

TEST_F(TracingMultiTest, HalvesWhileThereIsNoMemory) {
  fake_.options().enomem_cnt = 30;
  const auto attachment = Attach(Core(100));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(attachment->Report().attached, 100u);
  EXPECT_EQ(attachment->links().size(), 4u);
}

// Maps live as long as an attachment that may need them.
TEST_F(TracingMultiTest, UpdatableKeepsItsMaps) {
  const int map = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(map, 0);
  auto& insns = program_.image->insns;
  for (int i = 0; i < 2; ++i) {
    insns.insert(insns.begin(), {{BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1,
                                  BPF_PSEUDO_MAP_FD, 0, map},
                                 {}});
  }
  options_.updatable = true;
  {
    const auto attachment = Attach(Core(3));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    EXPECT_NE(insns[0].imm, map);
    EXPECT_EQ(insns[0].imm, insns[2].imm);
    EXPECT_GE(fcntl(insns[0].imm, F_GETFD), 0);
    close(map);
    EXPECT_GE(fcntl(insns[0].imm, F_GETFD), 0);
  }
  program_.image = nullptr;
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

}  // namespace
}  // namespace ksweep
