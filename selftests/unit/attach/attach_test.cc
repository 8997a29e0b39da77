#include "ksweep/attach.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ksweep/status.h"
#include "lib/attach/attacher.h"
#include "lib/base/bpf_sys.h"
#include "lib/resolve/resolution_builder.h"
#include "selftests/testing/bpf_elf.h"
#include "selftests/testing/fake_bpf.h"
#include "selftests/unit/attach/attach_fixture.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using AttachTest = AttachFixture;

TEST_F(AttachTest, OneLinkByAddress) {
  {
    const auto attachment = Attach(MakeResolution(3));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    EXPECT_EQ(attachment->kind(), Kind::kKprobeMulti);
    EXPECT_EQ(attachment->links().size(), 1u);
    EXPECT_THAT(attachment->targets(), ElementsAre(0, 1, 2));
    EXPECT_EQ(attachment->syscalls(), 1u);
    EXPECT_GE(attachment->attach_ns(), 0);

    ASSERT_EQ(fake_.links().size(), 1u);
    const FakeBpfSys::Link made = fake_.links()[0];
    EXPECT_EQ(made.fd, attachment->links()[0].fd());
    EXPECT_EQ(made.attach_type, kBpfTraceKprobeMulti);
    EXPECT_EQ(made.flags, 0u);
    EXPECT_THAT(made.addrs, ElementsAre(AddrOf(0), AddrOf(1), AddrOf(2)));
    EXPECT_THAT(made.cookies, ElementsAre(0, 1, 2));
    EXPECT_EQ(fake_.OpenLinkCnt(), 1u);
  }
  EXPECT_EQ(fake_.OpenLinkCnt(), 0u);
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST_F(AttachTest, KretprobeMulti) {
  options_.kind = Kind::kKretprobeMulti;
  const auto attachment = Attach(MakeResolution(2, {Kind::kKretprobeMulti}));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(attachment->kind(), Kind::kKretprobeMulti);
  EXPECT_EQ(fake_.links()[0].flags, kBpfKprobeMultiReturn);
}

TEST_F(AttachTest, ByNameIfThereAreNoAddresses) {
  ResolutionText text;
  for (size_t i = 0; i < 3; ++i) text.Add(i).addr = 0;
  text.builder().set_by_name(true);
  const auto attachment = Attach(text.Build());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  const FakeBpfSys::Link made = fake_.links()[0];
  EXPECT_THAT(made.names, ElementsAre("func_0", "func_1", "func_2"));
  EXPECT_THAT(made.addrs, IsEmpty());
  EXPECT_THAT(made.cookies, ElementsAre(0, 1, 2));
}

TEST_F(AttachTest, TheResolutionMayGo) {
  auto resolution = std::make_unique<Resolution>(MakeResolution(3));
  const auto attachment = Attach(*resolution);
  resolution.reset();
  ASSERT_TRUE(attachment.ok());
  EXPECT_EQ(attachment->ReadStats()->cnt, 3u);
}

TEST_F(AttachTest, UntestedTargetsAreAttachedToo) {
  ResolutionText text;
  text.Add(0).untested = true;
  text.Add(1);
  ASSERT_TRUE(Attach(text.Build()).ok());
  EXPECT_THAT(fake_.links()[0].addrs, ElementsAre(AddrOf(0), AddrOf(1)));
}

// Slots count what is attached, not what was resolved.
TEST_F(AttachTest, OnlyTargetsThatFitTheKind) {
  ResolutionText text({Kind::kKprobeMulti, Kind::kKprobe});
  text.Add(0);
  text.Add(1).kinds = {Kind::kKprobe};
  text.Add(2);
  const auto attachment = Attach(text.Build());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_THAT(attachment->targets(), ElementsAre(0, 2));
  EXPECT_THAT(fake_.links()[0].addrs, ElementsAre(AddrOf(0), AddrOf(2)));
  EXPECT_THAT(fake_.links()[0].cookies, ElementsAre(0, 1));
}

TEST_F(AttachTest, BugCase53_CookiesStayWithTheirFunction) {
  std::vector<Request> requests = {Request::Address(AddrOf(0))};
  requests[0].set_cookie(1);
  // As a sweep would give them, in any order of requests: no cookie has
  // anything to do with its neighbours' order.
  for (uint32_t per_link : {1u, 2u, 3u, 4u, 100u}) {
    ResolutionText text({Kind::kKprobeMulti, Kind::kKprobe}, requests);
    text.Add(4).cookie = 9;
    text.Add(7).cookie = 0;
    text.Add(9).cookie = 77;
    text.builder().targets().back().kinds = {Kind::kKprobe};
    text.Add(10).cookie = UINT64_MAX;
    text.Add(20).cookie = 1;
    options_.max_per_link = per_link;
    const size_t links_before = fake_.links().size();
    ASSERT_TRUE(Attach(text.Build()).ok());

    std::map<uint64_t, uint64_t> cookies;
    const std::vector<FakeBpfSys::Link> links = fake_.links();
    for (size_t i = links_before; i < links.size(); ++i) {
      ASSERT_EQ(links[i].addrs.size(), links[i].cookies.size());
      for (size_t j = 0; j < links[i].addrs.size(); ++j) {
        cookies[links[i].addrs[j]] = links[i].cookies[j];
      }
    }
    const std::map<uint64_t, uint64_t> want = {{AddrOf(4), 9},
                                               {AddrOf(7), 0},
                                               {AddrOf(10), UINT64_MAX},
                                               {AddrOf(20), 1}};
    EXPECT_EQ(cookies, want) << per_link;
  }
}

TEST_F(AttachTest, BugCase53_CookiesStayWithTheirName) {
  std::vector<Request> requests = {Request::Exact("func_2")};
  requests[0].set_cookie(1);
  ResolutionText text({Kind::kKprobeMulti}, requests);
  text.Add(2).cookie = 1;
  text.Add(0).cookie = 3;
  text.Add(1).cookie = 2;
  text.builder().set_by_name(true);
  ASSERT_TRUE(Attach(text.Build()).ok());
  EXPECT_THAT(fake_.links()[0].names,
              ElementsAre("func_2", "func_0", "func_1"));
  EXPECT_THAT(fake_.links()[0].cookies, ElementsAre(1, 3, 2));
}

// A function asked for in several ways, by several names.
TEST_F(AttachTest, BugCase54_EachTargetIsPassedOnce) {
  for (bool by_name : {false, true}) {
    ResolutionText text;
    static constexpr std::string_view kAliases[] = {"func_1", "func_2"};
    static constexpr uint32_t kRequests[] = {0, 1, 5};
    Target& target = text.Add(0);
    target.aliases = kAliases;
    target.requests = kRequests;
    text.builder().set_by_name(by_name);
    const auto attachment = Attach(text.Build());
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    const FakeBpfSys::Link made = fake_.links().back();
    EXPECT_EQ(made.addrs.size() + made.names.size(), 1u);
    EXPECT_THAT(attachment->targets(), ElementsAre(0));
  }
}

struct SplitCase {
  size_t targets;
  uint32_t max_per_link;
  std::vector<size_t> want;
};

TEST_F(AttachTest, Splits) {
  const SplitCase kCases[] = {
      {1, 1, {1}},     {3, 1, {1, 1, 1}},       {10, 4, {4, 4, 2}},
      {10, 5, {5, 5}}, {10, 9, {9, 1}},         {10, 10, {10}},
      {10, 11, {10}},  {10, kMaxPerLink, {10}}, {10, UINT32_MAX, {10}},
  };
  for (const SplitCase& c : kCases) {
    options_.max_per_link = c.max_per_link;
    const size_t links_before = fake_.links().size();
    const auto attachment = Attach(MakeResolution(c.targets));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    std::vector<size_t> cnts;
    std::vector<uint64_t> cookies;
    const std::vector<FakeBpfSys::Link> links = fake_.links();
    for (size_t i = links_before; i < links.size(); ++i) {
      cnts.push_back(links[i].addrs.size());
      cookies.insert(cookies.end(), links[i].cookies.begin(),
                     links[i].cookies.end());
    }
    EXPECT_EQ(cnts, c.want) << c.targets << "/" << c.max_per_link;
    EXPECT_EQ(attachment->links().size(), c.want.size());
    EXPECT_EQ(attachment->syscalls(), c.want.size());
    // Slots count over all links.
    std::vector<uint64_t> slots(c.targets);
    std::iota(slots.begin(), slots.end(), 0);
    EXPECT_EQ(cookies, slots);
  }
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

// Linux 6.18 and later have no memory for a link of 131,072.
TEST_F(AttachTest, SplitsWhereOneLinkWouldBeTooBig) {
  fake_.options().trace_anything = true;
  options_.max_per_link = UINT32_MAX;  // is bounded
  const auto attachment = Attach(MakeResolution(131072));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  ASSERT_EQ(fake_.links().size(), 2u);
  EXPECT_EQ(fake_.links()[0].addrs.size(), kMaxPerLink);
  EXPECT_EQ(fake_.links()[1].addrs.size(), 131072 - kMaxPerLink);
  EXPECT_EQ(attachment->ReadStats()->cnt, 131072u);
}

TEST_F(AttachTest, Progress) {
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  options_.max_per_link = 4;
  options_.progress = [&seen](uint64_t done, uint64_t total) {
    seen.emplace_back(done, total);
    return true;
  };
  ASSERT_TRUE(Attach(MakeResolution(10)).ok());
  EXPECT_THAT(seen, ElementsAre(std::make_pair(0, 10), std::make_pair(4, 10),
                                std::make_pair(8, 10)));
}

TEST_F(AttachTest, ProgressCancels) {
  options_.max_per_link = 4;
  for (uint64_t stop_at : {0, 4, 8}) {
    options_.progress = [stop_at](uint64_t done, uint64_t) {
      return done < stop_at;
    };
    const uint32_t calls_before = fake_.calls();
    const absl::Status status = AttachError(MakeResolution(10));
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(ErrnoOf(status), 0);
    EXPECT_EQ(fake_.calls() - calls_before, stop_at / 4);
  }
}

TEST_F(AttachTest, AllOrNothing) {
  options_.max_per_link = 10;
  for (uint32_t failing : {0u, 1u, 5u, 9u}) {
    fake_.FailCall(fake_.calls() + failing, EMFILE);
    const absl::Status status = AttachError(MakeResolution(100));
    EXPECT_EQ(ErrnoOf(status), EMFILE);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST_F(AttachTest, OneRefusedFunctionFailsAll) {
  for (int err : {EINVAL, ENOENT}) {
    fake_.options().bad_addr_errno = err;
    for (uint32_t per_link : {1u, 7u, kMaxPerLink}) {
      options_.max_per_link = per_link;
      // Function 100 is unknown to the kernel.
      EXPECT_EQ(ErrnoOf(AttachError(MakeResolution(101))), err);
    }
  }
}

TEST_F(AttachTest, ARefusedFunctionAloneIsNamed) {
  options_.max_per_link = 1;
  const absl::Status status = AttachError(MakeResolution(101));
  EXPECT_THAT(std::string(status.message()), HasSubstr("func_100"));
  EXPECT_EQ(ErrnoOf(status), ENOENT);
}

TEST_F(AttachTest, OutOfDescriptors) {
  options_.max_per_link = 1;
  fake_.options().max_open_links = 3;
  const absl::Status status = AttachError(MakeResolution(10));
  EXPECT_EQ(ErrnoOf(status), EMFILE);
  EXPECT_EQ(fake_.links().size(), 3u);
}

// Closing the links made before must not change what is reported.
TEST_F(AttachTest, BugCase58_ErrnoIsKept) {
  options_.max_per_link = 1;
  options_.progress = [](uint64_t, uint64_t) {
    errno = 0;
    return true;
  };
  fake_.FailCall(2, EACCES);
  const absl::Status status = AttachError(MakeResolution(3));
  EXPECT_EQ(ErrnoOf(status), EACCES) << status;
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
}

struct RefusedCase {
  const char* what;
  Kind kind;
  uint32_t max_per_link;
  size_t targets;
  bool loaded;
  absl::StatusCode want;
  const char* message;
};

constexpr RefusedCase kRefusedCases[] = {
    {"max_per_link", Kind::kKprobeMulti, 0, 1, true,
     absl::StatusCode::kInvalidArgument, "max_per_link"},
    {"not loaded", Kind::kKprobeMulti, 1, 1, false,
     absl::StatusCode::kFailedPrecondition, "not loaded"},
    {"kind of the resolution", Kind::kKretprobeMulti, 1, 1, true,
     absl::StatusCode::kFailedPrecondition,
     "made for kprobe.multi, not for kretprobe.multi"},
    {"no targets", Kind::kKprobeMulti, 1, 0, true,
     absl::StatusCode::kInvalidArgument, "omissions()"},
};

TEST_F(AttachTest, RefusedBeforeAnyCall) {
  for (const RefusedCase& c : kRefusedCases) {
    options_.kind = c.kind;
    options_.max_per_link = c.max_per_link;
    const Resolution resolution = MakeResolution(c.targets);
    const absl::Status status = Attacher(fake_, resolution, options_)
                                    .Attach(c.loaded ? prog_fd_ : -1)
                                    .status();
    EXPECT_EQ(status.code(), c.want) << c.what << ": " << status;
    EXPECT_EQ(ErrnoOf(status), 0) << c.what;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message)) << c.what;
  }
  EXPECT_EQ(fake_.calls(), 0u);
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST_F(AttachTest, NoTargetsPointsAtWhy) {
  ResolutionText text({Kind::kKprobeMulti, Kind::kKprobe});
  text.Add(0).kinds = {Kind::kKprobe};
  text.builder().omissions().resize(2);
  text.builder().unmatched().resize(3);
  const std::string message(AttachError(text.Build()).message());
  EXPECT_THAT(message, HasSubstr("of 1 targets none fits kprobe.multi"));
  EXPECT_THAT(message, HasSubstr("2 functions were left out"));
  EXPECT_THAT(message, HasSubstr("3 requests found none"));
}

// AttachFd() cannot see what a program was loaded for; the kernel can.
TEST_F(AttachTest, BugCase55_ProgramOfAnotherKindIsRefused) {
  for (uint32_t attach_type : {0u, kBpfTraceKprobeSession}) {
    const Resolution resolution = MakeResolution(2);
    const int prog_fd = fake_.AddProgram(attach_type);
    const absl::Status status =
        Attacher(fake_, resolution, options_).Attach(prog_fd).status();
    EXPECT_EQ(ErrnoOf(status), EINVAL);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("not loaded for this kind"));
  }
}

// Attach() can, and makes no call.
TEST(AttachProgram, BugCase55_ProgramOfAnotherKindIsRefused) {
  const std::string elf = BuildBpfElf({{"kprobe", "plain"}});
  bpf_object* object = bpf_object__open_mem(elf.data(), elf.size(), nullptr);
  ASSERT_NE(object, nullptr);
  bpf_program* prog = bpf_object__find_program_by_name(object, "plain");
  const Resolution resolution = MakeResolution(1);

  absl::Status status = Attach(resolution, prog).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("without attach type"));

  ASSERT_TRUE(PrepareProgram(prog, Kind::kKprobeMulti).ok());
  status = Attach(resolution, prog).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not loaded"));

  AttachOptions session;
  session.kind = Kind::kKprobeSession;
  status = Attach(resolution, prog, session).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("kprobe.session needs type kprobe (2) with attach"));
  bpf_object__close(object);
}

TEST(AttachProgram, NoProgram) {
  const Resolution resolution = MakeResolution(1);
  EXPECT_EQ(Attach(resolution, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AttachFd(resolution, -1).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(AttachTest, StatsAddUpOverLinks) {
  options_.max_per_link = 4;
  fake_.options().missed = 5;
  const auto attachment = Attach(MakeResolution(10));
  ASSERT_TRUE(attachment.ok());
  const auto stats = attachment->ReadStats();
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->cnt, 10u);
  EXPECT_EQ(stats->missed, 15u);
  EXPECT_EQ(attachment->syscalls(), 3u);  // those of the attach
}

struct OldInfoCase {
  size_t known_bytes;
  uint64_t cnt;
  uint64_t missed;
};

TEST_F(AttachTest, StatsOfOlderKernels) {
  constexpr OldInfoCase kCases[] = {
      {16, 0, 0},   // before 6.6: nothing about kprobe.multi
      {32, 10, 0},  // 6.6: the count
      {40, 10, 5},  // 6.7: and the missed
  };
  fake_.options().missed = 5;
  const auto attachment = Attach(MakeResolution(10));
  ASSERT_TRUE(attachment.ok());
  for (const OldInfoCase& c : kCases) {
    fake_.options().known_info_bytes = c.known_bytes;
    const auto stats = attachment->ReadStats();
    ASSERT_TRUE(stats.ok()) << stats.status();
    EXPECT_EQ(stats->cnt, c.cnt) << c.known_bytes;
    EXPECT_EQ(stats->missed, c.missed) << c.known_bytes;
  }
}

TEST_F(AttachTest, StatsErrorsKeepTheErrno) {
  const auto attachment = Attach(MakeResolution(1));
  ASSERT_TRUE(attachment.ok());
  fake_.FailCall(fake_.calls(), EPERM);
  const absl::Status status = attachment->ReadStats().status();
  EXPECT_EQ(ErrnoOf(status), EPERM);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(AttachTest, DetachClosesAllOnce) {
  options_.max_per_link = 1;
  auto attachment = Attach(MakeResolution(5));
  ASSERT_TRUE(attachment.ok());
  EXPECT_EQ(fake_.OpenLinkCnt(), 5u);
  EXPECT_TRUE(attachment->Detach().ok());
  EXPECT_EQ(fake_.OpenLinkCnt(), 0u);
  EXPECT_THAT(attachment->links(), IsEmpty());
  EXPECT_EQ(attachment->ReadStats()->cnt, 0u);
  EXPECT_TRUE(attachment->Detach().ok());
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST_F(AttachTest, DetachGoesOnAfterAnError) {
  options_.max_per_link = 1;
  auto attachment = Attach(MakeResolution(3));
  ASSERT_TRUE(attachment.ok());
  close(attachment->links()[1].fd());
  EXPECT_EQ(ErrnoOf(attachment->Detach()), EBADF);
  EXPECT_EQ(fake_.OpenLinkCnt(), 0u);
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST(Attachment, EmptyHoldsNothing) {
  Attachment attachment;
  EXPECT_TRUE(attachment.Detach().ok());
  EXPECT_EQ(attachment.ReadStats()->cnt, 0u);
}

TEST_F(AttachTest, MovedToAnotherDetachesTheOther) {
  auto first = Attach(MakeResolution(1));
  auto second = Attach(MakeResolution(2));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(fake_.OpenLinkCnt(), 2u);
  *first = *std::move(second);
  EXPECT_EQ(fake_.OpenLinkCnt(), 1u);
  EXPECT_EQ(first->ReadStats()->cnt, 2u);
}

}  // namespace
}  // namespace ksweep
