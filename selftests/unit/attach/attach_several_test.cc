// Several programs in one attachment, the choice of a kind, and the switch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksweep/attach.h"
#include "ksweep/status.h"
#include "lib/attach/linking/arrange.h"
#include "lib/base/bpf_sys.h"
#include "selftests/testing/fake_bpf.h"
#include "selftests/unit/attach/attach_fixture.h"

namespace ksweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using AttachSeveralTest = AttachFixture;

constexpr KindSet kPair = {Kind::kKprobeMulti, Kind::kKretprobeMulti};

TEST_F(AttachSeveralTest, ReturnsBeforeEntriesWithTheSameSlots) {
  const int return_fd = fake_.AddProgram();
  const auto attachment = Attach(
      MakeResolution(3, kPair),
      {{{Kind::kKprobeMulti, prog_fd_}, {Kind::kKretprobeMulti, return_fd}}});
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_THAT(attachment->targets(), ElementsAre(0, 1, 2));

  const std::vector<FakeBpfSys::Link> links = fake_.links();
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].flags, kBpfKprobeMultiReturn);
  EXPECT_EQ(links[0].prog_fd, return_fd);
  EXPECT_EQ(links[1].flags, 0u);
  EXPECT_EQ(links[1].prog_fd, prog_fd_);
  EXPECT_EQ(links[0].addrs, links[1].addrs);
  EXPECT_EQ(links[0].cookies, links[1].cookies);

  const AttachReport report = attachment->Report();
  EXPECT_EQ(report.attached, 3u);
  EXPECT_EQ(report.links, 2u);
  ASSERT_EQ(report.kinds.size(), 2u);
  EXPECT_EQ(report.kinds[0].kind, Kind::kKretprobeMulti);
  EXPECT_EQ(report.kinds[0].attached, 3u);
  EXPECT_THAT(report.ToString(),
              AllOf(HasSubstr("attached 3 functions in 2 links"),
                    HasSubstr("kretprobe.multi: 3 functions in 1 link\n"),
                    HasSubstr("kprobe.multi: 3 functions in 1 link\n")));
}

// What PreparePrograms() makes of a kind that the kernel lacks.
ProgramFd Absent(Kind kind) {
  ProgramFd program;
  program.kind = kind;
  program.absent = "needs what is not there";
  return program;
}

TEST_F(AttachSeveralTest, AnAbsentKindsTargetsGoToTheNext) {
  const KindSet kinds = {Kind::kFentryMulti, Kind::kKprobeMulti};
  ResolutionText text(kinds);
  for (size_t i = 0; i < 5; ++i) text.Add(i).kinds = kinds;
  text.Add(5).kinds = {Kind::kKprobeMulti};
  text.Add(6).kinds = {Kind::kFentryMulti};
  const auto attachment =
      Attach(text.Build(),
             {{Absent(Kind::kFentryMulti), {Kind::kKprobeMulti, prog_fd_}}});
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_THAT(attachment->targets(), ElementsAre(0, 1, 2, 3, 4, 5));
  ASSERT_EQ(fake_.links().size(), 1u);
  EXPECT_EQ(attachment->kind(), Kind::kKprobeMulti);
  const AttachReport report = attachment->Report();
  ASSERT_EQ(report.absent.size(), 1u);
  EXPECT_EQ(report.absent[0].kind, Kind::kFentryMulti);
  EXPECT_EQ(report.absent[0].fitting, 6u);
  EXPECT_THAT(report.ToString(),
              AllOf(HasSubstr("  kprobe.multi: 6 functions in 1 link\n"),
                    HasSubstr("  fentry.multi absent, which 6 targets fit: "
                              "needs what is not there\n")));
}

TEST_F(AttachSeveralTest, AllAbsentIsAnErrorWithEach) {
  const KindSet kinds = {Kind::kFentryMulti, Kind::kKprobeMulti};
  const absl::Status status =
      Attach(MakeResolution(3, kinds),
             {{Absent(Kind::kFentryMulti), Absent(Kind::kKprobeMulti)}})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("; fentry.multi: needs what is not there"),
                    HasSubstr("; kprobe.multi: needs what is not there")));
  EXPECT_THAT(fake_.links(), IsEmpty());
}

TEST_F(AttachSeveralTest, RefusedAtTheReturnIsNotAttachedAtTheEntry) {
  options_.on_refused = OnRefused::kSkip;
  fake_.RefuseAddr(AddrOf(1), ENOENT);
  const auto attachment = Attach(
      MakeResolution(3, kPair),
      {{{Kind::kKprobeMulti, prog_fd_}, {Kind::kKretprobeMulti, prog_fd_}}});
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  ASSERT_EQ(attachment->refused().size(), 1u);
  EXPECT_EQ(attachment->refused()[0].kind, Kind::kKretprobeMulti);
  EXPECT_FALSE(attachment->IsAttached(1));
  EXPECT_EQ(attachment->Report().attached, 2u);
  EXPECT_THAT(fake_.links().back().addrs, ElementsAre(AddrOf(0), AddrOf(2)));
}

TEST_F(AttachSeveralTest, AFailedEntryTakesTheReturnBack) {
  fake_.FailCall(1, EPERM);
  const auto attachment = Attach(
      MakeResolution(3, kPair),
      {{{Kind::kKprobeMulti, prog_fd_}, {Kind::kKretprobeMulti, prog_fd_}}});
  EXPECT_EQ(attachment.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(fake_.OpenLinkCnt(), 0u);
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST_F(AttachSeveralTest, EachTargetByTheFirstProgramThatFits) {
  ResolutionText text(kPair);
  text.Add(0);
  text.Add(1).kinds = {Kind::kKretprobeMulti};
  text.Add(2).kinds = {Kind::kKprobeMulti};
  text.Add(3).kinds = {Kind::kKprobe};  // none
  const auto attachment = Attach(
      text.Build(),
      {{{Kind::kKprobeMulti, prog_fd_}, {Kind::kKretprobeMulti, prog_fd_}}});
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_THAT(attachment->targets(), ElementsAre(0, 1, 2));
  EXPECT_THAT(fake_.links()[0].addrs, ElementsAre(AddrOf(0), AddrOf(1)));
  EXPECT_THAT(fake_.links()[1].addrs, ElementsAre(AddrOf(0), AddrOf(2)));
  EXPECT_THAT(fake_.links()[1].cookies, ElementsAre(0, 2));
}

struct KindsCase {
  std::vector<Kind> kinds;
  std::string_view error;  // empty: fine
};

TEST(CheckKinds, Cases) {
  const KindsCase cases[] = {
      {{Kind::kKprobeMulti}, ""},
      {{Kind::kKprobeMulti, Kind::kKretprobeMulti}, ""},
      {{Kind::kFentryMulti, Kind::kKprobeMulti}, ""},
      {{Kind::kFsessionMulti, Kind::kKprobeSession}, ""},
      {{Kind::kKprobe, Kind::kKretprobe, Kind::kKprobe},
       "two programs of kind kprobe;"},
      {{Kind::kKprobeSession, Kind::kKprobeMulti},
       "programs of kinds kprobe.session and kprobe.multi together"},
      {{Kind::kFexit, Kind::kFsession},
       "programs of kinds fexit and fsession together"},
  };
  for (const KindsCase& c : cases) {
    const absl::Status status = CheckKinds(c.kinds);
    EXPECT_EQ(status.ok(), c.error.empty()) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(c.error)));
  }
}

TEST_F(AttachSeveralTest, KindsThatDoNotGoTogetherAreRefusedBeforeAnyCall) {
  const auto attachment = Attach(
      MakeResolution(3),
      {{{Kind::kKprobeMulti, prog_fd_}, {Kind::kKprobeMulti, prog_fd_}}});
  EXPECT_EQ(attachment.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      Attach(MakeResolution(3), absl::Span<const ProgramFd>()).status().code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(fake_.calls(), 0u);
}

TEST_F(AttachSeveralTest, AutoIsTheKindOfTheResolution) {
  options_.kind = kAuto;
  {
    const auto attachment = Attach(MakeResolution(1, {Kind::kKretprobeMulti}));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    EXPECT_EQ(attachment->kind(), Kind::kKretprobeMulti);
  }

  const absl::Status status = AttachError(MakeResolution(1, kPair));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("made for kprobe.multi, kretprobe.multi; say in "
                        "AttachOptions::kind"));
}

TEST_F(AttachSeveralTest, ReadyOnlyWhileEverythingIsAttached) {
  bool ready = true;
  std::vector<bool> seen;
  options_.ready = &ready;
  options_.max_per_link = 2;
  options_.progress = [&](uint64_t, uint64_t) {
    seen.push_back(ready);
    return true;
  };
  {
    auto attachment = Attach(MakeResolution(5));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    EXPECT_THAT(seen, ElementsAre(false, false, false));
    EXPECT_TRUE(ready);
  }
  EXPECT_FALSE(ready) << "also when destroyed";

  auto attachment = Attach(MakeResolution(5));
  ASSERT_TRUE(attachment->Detach().ok());
  EXPECT_FALSE(ready);

  fake_.FailCall(fake_.calls(), EPERM);
  EXPECT_EQ(ErrnoOf(AttachError(MakeResolution(5))), EPERM);
  EXPECT_FALSE(ready);
}

TEST_F(AttachSeveralTest, UpdatableHasALinkForEachOwner) {
  options_.updatable = true;
  ResolutionText text;
  const std::string_view modules[] = {"", "zoo", "", "ant", "zoo"};
  for (size_t i = 0; i < 5; ++i) text.Add(i).module = modules[i];
  const auto attachment = Attach(text.Build());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  ASSERT_EQ(fake_.links().size(), 3u);
  EXPECT_THAT(fake_.links()[0].addrs, ElementsAre(AddrOf(0), AddrOf(2)));
  EXPECT_THAT(fake_.links()[1].addrs, ElementsAre(AddrOf(3)));
  EXPECT_THAT(fake_.links()[2].addrs, ElementsAre(AddrOf(1), AddrOf(4)));
  EXPECT_THAT(fake_.links()[2].cookies, ElementsAre(1, 4));
}

TEST_F(AttachSeveralTest, EachOfSeveralCookiesIsASlot) {
  const std::vector<uint64_t> more = {8, 9};
  std::vector<Request> requests = {Request::Address(AddrOf(0))};
  requests[0].set_cookie(7);
  ResolutionText text({Kind::kKprobeMulti}, requests);
  text.Add(0).cookie = 7;
  text.builder().targets().back().more_cookies = more;
  text.Add(1).cookie = 0;
  const auto attachment = Attach(text.Build());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_THAT(attachment->targets(), ElementsAre(0, 0, 0, 1));
  ASSERT_EQ(fake_.links().size(), 3u);
  EXPECT_THAT(fake_.links()[0].addrs, ElementsAre(AddrOf(0), AddrOf(1)));
  EXPECT_THAT(fake_.links()[0].cookies, ElementsAre(7, 0));
  EXPECT_THAT(fake_.links()[1].cookies, ElementsAre(8));
  EXPECT_THAT(fake_.links()[2].cookies, ElementsAre(9));
}

// The core kernel's link has shown that it is not the call.
TEST_F(AttachSeveralTest, AllOfAModuleThatIsGoing) {
  options_.updatable = true;
  options_.on_refused = OnRefused::kSkip;
  ResolutionText text;
  text.Add(0);
  text.Add(1).module = "going";
  text.Add(2).module = "going";
  fake_.RefuseAddr(AddrOf(1), EINVAL);
  fake_.RefuseAddr(AddrOf(2), EINVAL);
  const auto attachment = Attach(text.Build());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(attachment->refused().size(), 2u);
  EXPECT_TRUE(attachment->IsAttached(0));
  EXPECT_EQ(attachment->links().size(), 1u);
}

}  // namespace
}  // namespace ksweep
