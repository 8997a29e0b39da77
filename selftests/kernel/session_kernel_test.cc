// Sessions for real: one program at entry and return. Run as the tests of
// attach_kernel_test.cc are, whose main() it shares.

#include <bpf/bpf.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ksweep/attach.h"
#include "ksweep/session.h"
#include "ksweep/status.h"
#include "selftests/kernel/kernel_test_util.h"
#include "session.ctx.skel.h"
#include "session.skel.h"

namespace ksweep {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::ResolveHere;
using testing::TriggerGetppid;

constexpr char kGetppid[] = "__x64_sys_getppid";

// Every kernel that the tests run on and that has fprobe has sessions too.
bool KernelHasSessions() { return testing::KernelHas("CONFIG_FPROBE"); }

Resolution ResolveForSession(const std::vector<std::string>& requests) {
  ResolveOptions options;
  options.kinds = {Kind::kKprobeSession};
  return ResolveHere(requests, options);
}

uint32_t SlotOf(const Resolution& resolution, std::string_view name) {
  for (uint32_t i = 0; i < resolution.targets().size(); ++i) {
    if (resolution.targets()[i].name == name) return i;
  }
  ADD_FAILURE() << name << " is no target";
  return 0;
}

// What the BPF program counts of one function.
struct Calls {
  uint64_t entries = 0;
  uint64_t returns = 0;

  friend bool operator==(const Calls&, const Calls&) = default;
};

void PrintTo(const Calls& calls, std::ostream* out) {
  *out << calls.entries << " entries, " << calls.returns << " returns";
}

struct SessionOptions {
  uint32_t vetoed_slot = UINT32_MAX;  // none
  bool only_this_process = true;
};

// The session program, attached to the targets of a resolution.
class Session {
 public:
  // Null if it fails, which fails the test.
  static std::unique_ptr<Session> Attach(
      const Resolution& resolution,
      const SessionOptions& session_options = {}) {
    auto session = std::make_unique<Session>();
    if (!session->Load(resolution.targets().size(), session_options)) {
      return nullptr;
    }
    AttachOptions options;
    options.kind = Kind::kKprobeSession;
    absl::StatusOr<Attachment> attachment =
        ksweep::Attach(resolution, session->prog(), options);
    EXPECT_TRUE(attachment.ok()) << attachment.status();
    if (!attachment.ok()) return nullptr;
    session->attachment_ = *std::move(attachment);
    return session;
  }

  bpf_program* prog() const { return skeleton_->progs.count_both_ends; }
  Attachment& attachment() { return attachment_; }
  session_bpf::session_bpf__bss& counters() { return *skeleton_->bss; }

  Calls At(uint32_t slot) const {
    Calls calls;
    const int map = bpf_map__fd(skeleton_->maps.calls);
    EXPECT_EQ(bpf_map_lookup_elem(map, &slot, &calls), 0) << slot;
    return calls;
  }

  // Counts only what this process does from now on.
  void OnlyThisProcess() {
    counters().only_pid = static_cast<uint32_t>(getpid());
  }

  uint64_t Missed() const { return attachment_.ReadStats()->missed; }

 private:
  bool Load(size_t slots, const SessionOptions& options) {
    absl::StatusOr<SessionSkeleton<session_bpf>> skeleton =
        OpenSessionSkeleton<session_bpf, session_ctx_bpf>(
            session_bpf__create_skeleton);
    EXPECT_TRUE(skeleton.ok()) << skeleton.status();
    if (!skeleton.ok()) return false;
    skeleton_ = *std::move(skeleton);
    const absl::Status prepared = PrepareProgram(prog(), Kind::kKprobeSession);
    EXPECT_TRUE(prepared.ok()) << prepared;
    bpf_map__set_max_entries(skeleton_->maps.calls,
                             static_cast<uint32_t>(slots));
    skeleton_->data->vetoed_slot = options.vetoed_slot;
    if (options.only_this_process) OnlyThisProcess();
    const int err = session_bpf__load(skeleton_.get());
    EXPECT_EQ(err, 0) << "cannot load the BPF object";
    return err == 0;
  }

  SessionSkeleton<session_bpf> skeleton_;
  Attachment attachment_;  // detached before the object goes
};

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (KernelHasSessions()) return;
    GTEST_SKIP() << "this kernel is built without CONFIG_FPROBE";
  }
};

// Triggers some calls at a time until nothing is missed meanwhile, as a hit
// from an interrupt that comes while the program runs is. All calls have to be
// counted all the same, at both ends. Few at a time, since a call takes long
// while everything is traced. Returns the calls at the end.
Calls CountUndisturbed(Session& session, uint32_t slot, bool with_returns) {
  constexpr int kRounds = 2000;
  constexpr int kCalls = 20;
  Calls counted = session.At(slot);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t missed = session.Missed();
    TriggerGetppid(kCalls);
    counted.entries += kCalls;
    if (with_returns) counted.returns += kCalls;
    EXPECT_EQ(session.At(slot), counted);
    if (session.Missed() == missed) return counted;
  }
  ADD_FAILURE() << "hits were missed in each of " << kRounds << " rounds";
  return counted;
}

TEST_F(SessionTest, EntryAndReturnOfSomeFunctions) {
  const Resolution resolution =
      ResolveForSession({kGetppid, "__x64_sys_getpid", "vfs_*"});
  std::unique_ptr<Session> session = Session::Attach(resolution);
  ASSERT_NE(session, nullptr);
  TriggerGetppid(7);
  EXPECT_EQ(session->At(SlotOf(resolution, kGetppid)), (Calls{7, 7}));
  EXPECT_EQ(session->At(SlotOf(resolution, "__x64_sys_getpid")), (Calls{0, 0}));
  EXPECT_EQ(session->counters().bad_cookies, 0u);
  EXPECT_EQ(session->counters().bad_session_cookies, 0u);
  EXPECT_EQ(session->counters().all_runs, 14u);

  ASSERT_TRUE(session->attachment().Detach().ok());
  TriggerGetppid(7);
  EXPECT_EQ(session->counters().all_runs, 14u);
}

TEST_F(SessionTest, EntryVetoesTheReturn) {
  const Resolution resolution =
      ResolveForSession({kGetppid, "__x64_sys_getuid"});
  const uint32_t vetoed = SlotOf(resolution, kGetppid);
  std::unique_ptr<Session> session = Session::Attach(resolution, {vetoed});
  ASSERT_NE(session, nullptr);
  TriggerGetppid(9);
  for (int i = 0; i < 5; ++i) getuid();
  EXPECT_EQ(session->At(vetoed), (Calls{9, 0}));
  EXPECT_EQ(session->At(SlotOf(resolution, "__x64_sys_getuid")), (Calls{5, 5}));
  EXPECT_EQ(session->counters().bad_session_cookies, 0u);
}

// Also with all calls of all processes: what an entry leaves is what its return
// finds, in every function.
TEST_F(SessionTest, EveryFunctionOfTheKernel) {
  const Resolution resolution = ResolveForSession({"*"});
  ASSERT_GT(resolution.targets().size(), 30000u);
  SessionOptions everybody;
  everybody.only_this_process = false;
  std::unique_ptr<Session> session = Session::Attach(resolution, everybody);
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->attachment().links().size(), 1u);
  EXPECT_EQ(session->attachment().syscalls(), 1u);
  EXPECT_EQ(session->attachment().ReadStats()->cnt,
            resolution.targets().size());
  ASSERT_EQ(system("ls /proc > /dev/null; sleep 0.2"), 0);
  session->OnlyThisProcess();
  const uint32_t slot = SlotOf(resolution, kGetppid);
  const Calls counted = CountUndisturbed(*session, slot, true);

  ASSERT_TRUE(session->attachment().Detach().ok());
  const uint64_t runs = session->counters().all_runs;
  TriggerGetppid(1000);
  EXPECT_EQ(session->counters().all_runs, runs);
  EXPECT_EQ(session->At(slot), counted);
  EXPECT_EQ(session->counters().bad_cookies, 0u);
  EXPECT_EQ(session->counters().bad_session_cookies, 0u);
  size_t hit = 0;
  for (uint32_t i = 0; i < resolution.targets().size(); ++i) {
    const Calls calls = session->At(i);
    if (calls.entries == 0) continue;
    ++hit;
    // A call that is under way has not returned yet; none returns twice.
    EXPECT_LE(calls.returns, calls.entries) << resolution.targets()[i].name;
  }
  EXPECT_GT(hit, 300u);
  printf("kprobe.session: %zu functions, %zu left out, %zu were hit\n",
         resolution.targets().size(), resolution.omissions().size(), hit);
}

TEST_F(SessionTest, VetoAmongEveryFunctionOfTheKernel) {
  const Resolution resolution = ResolveForSession({"*"});
  const uint32_t slot = SlotOf(resolution, kGetppid);
  std::unique_ptr<Session> session = Session::Attach(resolution, {slot});
  ASSERT_NE(session, nullptr);
  CountUndisturbed(*session, slot, false);
  EXPECT_EQ(session->counters().bad_cookies, 0u);
  EXPECT_EQ(session->counters().bad_session_cookies, 0u);
}

TEST_F(SessionTest, TheFormIsThatOfTheKernel) {
  absl::StatusOr<SessionAbi> abi = DetectSessionAbi();
  ASSERT_TRUE(abi.ok()) << abi.status();
  EXPECT_NE(*abi, SessionAbi::kNone);
  // The other form does not load: what the choice is for. Only with libbpf that
  // compares without exception, as all do for a call that is not weak.
  int err = 0;
  if (*abi == SessionAbi::kCtx) {
    session_bpf* wrong = session_bpf__open();
    ASSERT_TRUE(
        PrepareProgram(wrong->progs.count_both_ends, Kind::kKprobeSession)
            .ok());
    err = session_bpf__load(wrong);
    session_bpf__destroy(wrong);
  } else {
    session_ctx_bpf* wrong = session_ctx_bpf__open();
    ASSERT_TRUE(
        PrepareProgram(wrong->progs.count_both_ends, Kind::kKprobeSession)
            .ok());
    err = session_ctx_bpf__load(wrong);
    session_ctx_bpf__destroy(wrong);
  }
  EXPECT_EQ(err, -EINVAL);
}

// The other side: a kernel that has no sessions, says so at the first step.
TEST(WithoutSessions, TheChoiceSaysWhatIsMissing) {
  if (KernelHasSessions()) GTEST_SKIP() << "this kernel has sessions";
  const absl::Status status = OpenSessionSkeleton<session_bpf, session_ctx_bpf>(
                                  session_bpf__create_skeleton)
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Linux 6.10"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("CONFIG_FPROBE"));
}

// A program without session calls loads on such a kernel, and the link fails.
TEST(WithoutSessions, AttachSaysWhatIsMissing) {
  if (KernelHasSessions()) GTEST_SKIP() << "this kernel has sessions";
  const Resolution resolution = ResolveForSession({"vfs_read"});
  std::unique_ptr<testing::Counter> counter =
      testing::Counter::Load(Kind::kKprobeSession, resolution.targets().size());
  ASSERT_NE(counter, nullptr);
  AttachOptions options;
  options.kind = Kind::kKprobeSession;
  const absl::Status status =
      Attach(resolution, counter->program(), options).status();
  EXPECT_THAT(ErrnoOf(status), AnyOf(EINVAL, EOPNOTSUPP)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("kprobe.session"));
  EXPECT_THAT(std::string(status.message()),
              AnyOf(HasSubstr("6.10"), HasSubstr("CONFIG_FPROBE")));
  printf("%s\n", std::string(status.message()).c_str());
}

}  // namespace
}  // namespace ksweep
