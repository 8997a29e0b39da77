// Functions that the kernel refuses, from the resolution to the report.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ksweep/attach.h"
#include "ksweep/status.h"
#include "lib/attach/attacher.h"
#include "lib/base/bpf_sys.h"
#include "lib/resolve/resolution_builder.h"
#include "selftests/testing/fake_bpf.h"

namespace ksweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kText = 0xffffffff81000000;

uint64_t AddrOf(size_t i) { return kText + 64 * i; }
std::string NameOf(size_t i) { return absl::StrFormat("func_%d", i); }

// A kernel in which some of the resolution's functions cannot be traced.
class AttachRefusedTest : public ::testing::Test {
 protected:
  AttachRefusedTest() {
    fake_.options().trace_anything = true;
    options_.kind = Kind::kKprobeMulti;
    options_.on_refused = OnRefused::kSkip;
    prog_fd_ = fake_.AddProgram();
    fds_before_ = CountOpenFds();
  }

  void Refuse(const std::set<uint32_t>& functions, int err = ENOENT) {
    for (uint32_t i : functions) fake_.RefuseAddr(AddrOf(i), err);
  }

  Resolution Make(size_t cnt, bool untested = false,
                  std::string_view module = "") {
    ResolutionBuilder builder({}, {Kind::kKprobeMulti});
    for (size_t i = 0; i < cnt; ++i) {
      Target target;
      target.addr = AddrOf(i);
      target.name = builder.text().Copy(NameOf(i));
      target.module = module;
      target.kinds = {Kind::kKprobeMulti};
      target.cookie = i;
      target.untested = untested;
      builder.targets().push_back(target);
    }
    return std::move(builder).Build();
  }

  absl::StatusOr<Attachment> Attach(const Resolution& resolution) {
    return Attacher(fake_, resolution, options_).Attach(prog_fd_);
  }

  // The error of an attach that has to fail and to leave nothing behind.
  absl::Status AttachError(const Resolution& resolution) {
    absl::Status status = Attach(resolution).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(fake_.OpenLinkCnt(), 0u) << status;
    EXPECT_EQ(CountOpenFds(), fds_before_) << status;
    return status;
  }

  // Cookies of what is attached, by address.
  std::map<uint64_t, uint64_t> AttachedCookies(const Attachment& attachment) {
    std::map<uint64_t, uint64_t> cookies;
    std::set<int> fds;
    for (const Link& link : attachment.links()) fds.insert(link.fd());
    const std::vector<FakeBpfSys::Link> made = fake_.links();
    // The last link made with a descriptor is the one that has it now.
    for (auto link = made.rbegin(); link != made.rend(); ++link) {
      if (fds.erase(link->fd) == 0) continue;
      for (size_t i = 0; i < link->addrs.size(); ++i) {
        EXPECT_TRUE(cookies.emplace(link->addrs[i], link->cookies[i]).second);
      }
    }
    return cookies;
  }

  FakeBpfSys fake_;
  AttachOptions options_;
  int prog_fd_ = -1;
  size_t fds_before_ = 0;
};

struct BoundCase {
  uint32_t refused;
  uint32_t max_calls;
};

// 2k·(⌈log2(n/k)⌉ + 1) + 3.
constexpr BoundCase kBoundCases[] = {
    {0, 1}, {1, 37}, {2, 67}, {17, 445}, {1000, 14003},
};

TEST_F(AttachRefusedTest, FiftyThousandFunctions) {
  constexpr uint32_t kCnt = 50000;
  std::mt19937 random(1);
  for (int err : {EINVAL, ENOENT}) {
    for (const auto& [k, max_calls] : kBoundCases) {
      FakeBpfSys fake;
      fake.options().trace_anything = true;
      const int prog_fd = fake.AddProgram();
      const size_t fds_before = CountOpenFds();
      std::set<uint32_t> refused;
      while (refused.size() < k) refused.insert(random() % kCnt);
      for (uint32_t i : refused) fake.RefuseAddr(AddrOf(i), err);
      {
        const auto attachment =
            Attacher(fake, Make(kCnt), options_).Attach(prog_fd);
        ASSERT_TRUE(attachment.ok()) << attachment.status();
        EXPECT_EQ(attachment->links().size(), 1u);
        EXPECT_EQ(attachment->ReadStats()->cnt, kCnt - k);
        EXPECT_EQ(attachment->targets().size(), kCnt);
        EXPECT_LE(attachment->syscalls(), max_calls);
        EXPECT_EQ(fake.OpenLinkCnt(), 1u);
        EXPECT_EQ(CountOpenFds(), fds_before + 1);
        std::set<uint32_t> seen;
        for (const RefusedFunction& r : attachment->refused()) {
          EXPECT_TRUE(seen.empty() || *seen.rbegin() < r.slot);
          EXPECT_EQ(r.err, err);
          EXPECT_FALSE(attachment->IsAttached(r.slot));
          seen.insert(r.slot);
        }
        EXPECT_EQ(seen, refused);
      }
      EXPECT_EQ(CountOpenFds(), fds_before);
    }
  }
}

TEST_F(AttachRefusedTest, BugCase56_TwoOf128AreNamed) {
  for (int err : {EINVAL, ENOENT}) {
    Refuse({17, 90}, err);
    options_.on_refused = OnRefused::kFail;
    const absl::Status status = AttachError(Make(128));
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("2 of 128 functions"), HasSubstr("func_17, func_90"),
              HasSubstr("all others are accepted")));
    EXPECT_EQ(ErrnoOf(status), err);
    // One meaning, one code: EINVAL is not about the call here.
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);

    options_.on_refused = OnRefused::kSkip;
    const auto attachment = Attach(Make(128));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    ASSERT_EQ(attachment->refused().size(), 2u);
    EXPECT_EQ(attachment->refused()[0].function, "func_17");
    EXPECT_EQ(attachment->refused()[1].slot, 90u);
    EXPECT_EQ(attachment->ReadStats()->cnt, 126u);
    EXPECT_LE(attachment->syscalls(), 31u);
  }
}

TEST_F(AttachRefusedTest, OneThatIsNotThereIsNamedByDefault) {
  Refuse({99});
  options_ = AttachOptions();
  const absl::Status status = AttachError(Make(100, false, "nf_tables"));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("1 of 100 functions"),
                    HasSubstr("func_99 [nf_tables]"), HasSubstr("ftrace")));
}

TEST_F(AttachRefusedTest, FailNamesAFewAndStops) {
  std::set<uint32_t> refused;
  for (uint32_t i = 100; i < 1100; ++i) refused.insert(i);
  Refuse(refused);
  options_.on_refused = OnRefused::kFail;
  const absl::Status status = AttachError(Make(50000));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("func_100, func_101, func_102 ("),
                    Not(HasSubstr("func_103")), HasSubstr("maybe more")));
  EXPECT_LE(fake_.calls(), 60u);
}

TEST_F(AttachRefusedTest, SkipUpTo) {
  Refuse({5, 50, 51});
  options_.on_refused = OnRefused::kSkipUpTo;
  for (uint64_t max_refused : {0, 1, 2}) {
    options_.max_refused = max_refused;
    const absl::Status status = AttachError(Make(100));
    EXPECT_EQ(ErrnoOf(status), ENOENT);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrFormat("max_refused is %d", max_refused)));
  }
  for (uint64_t max_refused : {3, 4}) {
    options_.max_refused = max_refused;
    const auto attachment = Attach(Make(100));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    EXPECT_EQ(attachment->refused().size(), 3u);
  }
}

TEST_F(AttachRefusedTest, UntestedOnesHaveALimit) {
  for (uint32_t k : {kMaxUntestedRefused, kMaxUntestedRefused + 1}) {
    std::set<uint32_t> refused;
    for (uint32_t i = 0; i < k; ++i) refused.insert(3 * i + 1);
    Refuse(refused);
    // Only for untested ones.
    EXPECT_TRUE(Attach(Make(2000)).ok());
    if (k == kMaxUntestedRefused) {
      EXPECT_TRUE(Attach(Make(2000, true)).ok());
      continue;
    }
    const absl::Status status = AttachError(Make(2000, true));
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("257 of 2000"), HasSubstr("filter list")));
  }
}

// Cookies are given before anything is refused, and stay.
TEST_F(AttachRefusedTest, BugCase53_SlotsAreNeverRenumbered) {
  Refuse({0, 3, 4, 9});
  for (uint32_t per_link : {1u, 2u, 3u, 100u}) {
    options_.max_per_link = per_link;
    const auto attachment = Attach(Make(10));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    EXPECT_THAT(attachment->targets(),
                ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    EXPECT_EQ(attachment->links().size(), (6 + per_link - 1) / per_link);
    std::map<uint64_t, uint64_t> want;
    for (uint32_t slot : {1, 2, 5, 6, 7, 8}) {
      EXPECT_TRUE(attachment->IsAttached(slot));
      want[AddrOf(slot)] = slot;
    }
    for (uint32_t slot : {0, 3, 4, 9, 10}) {
      EXPECT_FALSE(attachment->IsAttached(slot));
    }
    EXPECT_EQ(AttachedCookies(*attachment), want) << per_link;
  }
}

// A slot counts targets that fit the kind, so it is not the target's index.
TEST_F(AttachRefusedTest, RefusedTellsSlotAndTarget) {
  Refuse({2});
  ResolutionBuilder builder({}, {Kind::kKprobeMulti, Kind::kKprobe});
  for (size_t i = 0; i < 4; ++i) {
    Target target;
    target.addr = AddrOf(i);
    target.name = builder.text().Copy(NameOf(i));
    target.kinds = {i == 0 ? Kind::kKprobe : Kind::kKprobeMulti};
    builder.targets().push_back(target);
  }
  const auto attachment = Attach(std::move(builder).Build());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  ASSERT_EQ(attachment->refused().size(), 1u);
  EXPECT_EQ(attachment->refused()[0].slot, 1u);
  EXPECT_EQ(attachment->refused()[0].target, 2u);
  EXPECT_EQ(attachment->refused()[0].function, "func_2");
}

TEST_F(AttachRefusedTest, ByName) {
  fake_.options().trace_anything = false;
  for (size_t i = 0; i < 100; ++i) {
    if (i != 17 && i != 90) fake_.AddFunction(AddrOf(i), NameOf(i));
  }
  ResolutionBuilder builder({}, {Kind::kKprobeMulti});
  for (size_t i = 0; i < 100; ++i) {
    Target target;
    target.name = builder.text().Copy(NameOf(i));
    target.kinds = {Kind::kKprobeMulti};
    builder.targets().push_back(target);
  }
  builder.set_by_name(true);
  const auto attachment = Attach(std::move(builder).Build());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  ASSERT_EQ(attachment->refused().size(), 2u);
  EXPECT_EQ(attachment->refused()[0].function, "func_17");
  EXPECT_EQ(attachment->refused()[1].function, "func_90");
  EXPECT_EQ(attachment->refused()[1].err, ESRCH);
  EXPECT_THAT(attachment->refused()[1].reason, HasSubstr("of that name"));
  const FakeBpfSys::Link made = fake_.links().back();
  EXPECT_EQ(made.names.size(), 98u);
  EXPECT_EQ(made.names[17], "func_18");
  EXPECT_EQ(made.cookies[17], 18u);
}

struct ErrnoCase {
  int err;
  bool of_target;
};

// Bug case 52's table: which of them are worth looking for a function.
TEST_F(AttachRefusedTest, BugCase52_WhatIsIsolatedAndWhatFailsAtOnce) {
  constexpr ErrnoCase kCases[] = {
      {EINVAL, true},        {ESRCH, true},   {ENOENT, true},
      {EADDRNOTAVAIL, true}, {EBUSY, true},   {EOPNOTSUPP, false},
      {E2BIG, false},        {EPERM, false},  {EACCES, false},
      {EMFILE, false},       {EFAULT, false}, {ENODEV, false},
  };
  for (const ErrnoCase& c : kCases) {
    Refuse({7}, c.err);
    const uint32_t calls_before = fake_.calls();
    if (!c.of_target) {
      EXPECT_EQ(ErrnoOf(AttachError(Make(20))), c.err);
      EXPECT_EQ(fake_.calls() - calls_before, 1u) << c.err;
      continue;
    }
    const auto attachment = Attach(Make(20));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    ASSERT_EQ(attachment->refused().size(), 1u);
    EXPECT_EQ(attachment->refused()[0].err, c.err);
    EXPECT_FALSE(attachment->refused()[0].reason.empty());
  }
}

TEST_F(AttachRefusedTest, BugCase60_AFunctionPatchedByOthers) {
  Refuse({3}, EBUSY);
  Refuse({4}, EINVAL);
  auto attachment = Attach(Make(20));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  ASSERT_EQ(attachment->refused().size(), 2u);
  EXPECT_EQ(attachment->refused()[0].err, EBUSY);
  EXPECT_THAT(attachment->refused()[0].reason, HasSubstr("livepatch"));
  EXPECT_EQ(attachment->refused()[1].err, EINVAL);

  ASSERT_TRUE(attachment->Detach().ok());

  options_.on_refused = OnRefused::kFail;
  const absl::Status status = AttachError(Make(20));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("func_3, func_4 (Invalid argument) ("));
}

// Nothing to isolate if the call itself is wrong.
TEST_F(AttachRefusedTest, TheCallIsAtFault) {
  prog_fd_ = fake_.AddProgram(kBpfTraceKprobeSession);
  fds_before_ = CountOpenFds();
  for (OnRefused policy : {OnRefused::kFail, OnRefused::kSkip}) {
    options_.on_refused = policy;
    for (size_t n : {1, 2, 50000}) {
      const uint32_t calls_before = fake_.calls();
      const absl::Status status = AttachError(Make(n));
      EXPECT_EQ(ErrnoOf(status), EINVAL);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(n == 1 ? "func_0: " : "alone too"));
      EXPECT_LE(fake_.calls() - calls_before, 1 + kMaxProbes);
    }
  }
}

TEST_F(AttachRefusedTest, ShrinksWhereThereIsNoMemory) {
  fake_.options().enomem_cnt = 20000;
  Refuse({0, 33333, 49999});
  const auto attachment = Attach(Make(50000));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(attachment->refused().size(), 3u);
  EXPECT_EQ(attachment->links().size(), 4u);  // of 12500
  EXPECT_EQ(attachment->ReadStats()->cnt, 49997u);
}

TEST_F(AttachRefusedTest, NoMemoryAtAll) {
  fake_.options().enomem_cnt = 1;
  EXPECT_EQ(ErrnoOf(AttachError(Make(1000))), ENOMEM);
}

// Links for trying are closed before the next is made.
TEST_F(AttachRefusedTest, OneDescriptorIsEnough) {
  fake_.options().max_open_links = 1;
  Refuse({5, 700, 701});
  EXPECT_TRUE(Attach(Make(1000)).ok());
  options_.max_per_link = 100;
  EXPECT_EQ(ErrnoOf(AttachError(Make(1000))), EMFILE);
}

TEST_F(AttachRefusedTest, AFailureAtEachStepLeavesNothing) {
  Refuse({3, 40, 41});
  options_.max_per_link = 30;
  uint32_t steps = 0;
  {
    const auto attachment = Attach(Make(100));
    ASSERT_TRUE(attachment.ok());
    steps = attachment->syscalls();
  }
  EXPECT_GT(steps, 15u);
  for (int err : {EMFILE, EPERM, EFAULT}) {
    for (uint32_t step = 0; step < steps; ++step) {
      const uint32_t calls_before = fake_.calls();
      fake_.FailCall(calls_before + step, err);
      EXPECT_EQ(ErrnoOf(AttachError(Make(100))), err);
      EXPECT_EQ(fake_.calls() - calls_before, step + 1);
    }
  }
}

TEST_F(AttachRefusedTest, CancelAtEachStepLeavesNothing) {
  Refuse({3, 40, 41});
  options_.max_per_link = 30;
  uint32_t steps = 0;
  uint64_t last_done = 0;
  options_.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_GE(done, last_done);
    EXPECT_EQ(total, 100u);
    last_done = done;
    ++steps;
    return true;
  };
  ASSERT_TRUE(Attach(Make(100)).ok());
  EXPECT_EQ(last_done, 90u);
  for (uint32_t stop = 0; stop < steps; ++stop) {
    uint32_t step = 0;
    options_.progress = [&](uint64_t, uint64_t) { return step++ < stop; };
    EXPECT_EQ(AttachError(Make(100)).code(), absl::StatusCode::kCancelled);
  }
}

TEST_F(AttachRefusedTest, Report) {
  std::set<uint32_t> refused;
  for (uint32_t i = 0; i < 12; ++i) refused.insert(10 * i);
  Refuse(refused, EINVAL);
  auto attachment = Attach(Make(1000));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  const AttachReport report = attachment->Report();
  EXPECT_EQ(report.kind, Kind::kKprobeMulti);
  EXPECT_EQ(report.attached, 988u);
  EXPECT_EQ(report.refused.size(), 12u);
  EXPECT_EQ(report.links, 1u);
  EXPECT_EQ(report.syscalls, attachment->syscalls());
  EXPECT_EQ(report.attach_ns, attachment->attach_ns());
  EXPECT_THAT(
      report.ToString(),
      AllOf(
          HasSubstr("kprobe.multi: attached 988 functions in 1 link, 12 "
                    "refused; "),
          HasSubstr("  refused func_90: not a function that ftrace can trace"),
          HasSubstr("Invalid argument"), Not(HasSubstr("func_100")),
          HasSubstr("and 2 more")));
  ASSERT_TRUE(attachment->Detach().ok());
  EXPECT_EQ(attachment->Report().links, 1u);
}

TEST_F(AttachRefusedTest, ReportOfNothingRefused) {
  const auto attachment = Attach(Make(1));
  ASSERT_TRUE(attachment.ok());
  EXPECT_THAT(attachment->refused(), IsEmpty());
  EXPECT_THAT(attachment->Report().ToString(),
              HasSubstr("attached 1 function in 1 link, 0 refused; 1 system "
                        "call, "));
  EXPECT_EQ(Attachment().Report().attached, 0u);
}

}  // namespace
}  // namespace ksweep
