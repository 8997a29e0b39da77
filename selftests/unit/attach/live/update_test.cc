// Attachments that are brought up to date, and modules that are let go.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ksweep/attach.h"
#include "lib/base/bpf_sys.h"
#include "selftests/testing/fake_bpf.h"
#include "selftests/unit/attach/live/update_fixture.h"

namespace ksweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(UpdateTest, WhatIsTheSameCostsNothing) {
  const Resolution resolution = Make({{1}, {2}, {3, "drvx"}});
  Attachment attachment = MustAttach(resolution);
  const uint32_t calls = fake_.calls();
  const UpdateReport report =
      MustUpdate(attachment, Make({{1}, {2}, {3, "drvx"}}));
  EXPECT_EQ(fake_.calls(), calls);
  EXPECT_EQ(report.syscalls, 0u);
  EXPECT_EQ(report.kept, 3u);
  EXPECT_EQ(report.added + report.dropped + report.recookied, 0u);
  EXPECT_EQ(report.links_made + report.links_closed, 0u);
  EXPECT_EQ(attachment.links().size(), 2u);
}

TEST_F(UpdateTest, BugCase65_AModuleThatComesLater) {
  Attachment attachment = MustAttach(Make({{1}, {5}}));
  const uint32_t calls = fake_.calls();
  // In front of what was there, so that all indices of targets change.
  const Resolution newer = Make({{0, "drvx"}, {1}, {3, "drvx"}, {5}});
  const UpdateReport report = MustUpdate(attachment, newer);
  EXPECT_EQ(fake_.calls(), calls + 1);
  EXPECT_EQ(report.syscalls, 1u);
  EXPECT_EQ(report.added, 2u);
  EXPECT_EQ(report.kept, 2u);
  EXPECT_EQ(report.links_made, 1u);
  EXPECT_EQ(report.links_closed, 0u);
  EXPECT_EQ(report.doubled, 0u);
  EXPECT_THAT(attachment.targets(), ElementsAre(1, 3, 0, 2));
  EXPECT_EQ(&attachment.resolution().targets(), &newer.targets());
  EXPECT_EQ(
      AttachedNow(),
      (Attached{{0, "func_1"}, {1, "func_5"}, {2, "func_0"}, {3, "func_3"}}));
  EXPECT_EQ(attachment.Report().attached, 4u);
  EXPECT_EQ(attachment.Report().links, 2u);
  EXPECT_EQ(attachment.syscalls(), 2u);
}

TEST_F(UpdateTest, SomeOfALinkGoAndTheOthersStayWithTheirCookies) {
  Attachment attachment = MustAttach(Make({{1}, {2}, {3}, {4, "drvx"}}));
  const UpdateReport report =
      MustUpdate(attachment, Make({{1}, {3}, {4, "drvx"}}));
  EXPECT_EQ(report.syscalls, 1u);
  EXPECT_EQ(report.dropped, 1u);
  EXPECT_EQ(report.kept, 3u);
  EXPECT_EQ(report.links_made, 1u);
  EXPECT_EQ(report.links_closed, 1u);
  EXPECT_EQ(report.doubled, 2u);
  EXPECT_EQ(report.interrupted, 0u);
  EXPECT_THAT(
      report.ToString(),
      AllOf(HasSubstr("0 functions added, 1 dropped, 3 kept, 0 refused; 1 link "
                      "made, 1 closed; 1 system call"),
            HasSubstr("2 functions of the kept ones attached twice")));
  EXPECT_THAT(attachment.targets(), ElementsAre(0, kNoTarget, 1, 2));
  EXPECT_FALSE(attachment.IsAttached(1));
  EXPECT_TRUE(attachment.IsAttached(2));
  EXPECT_EQ(AttachedNow(),
            (Attached{{0, "func_1"}, {2, "func_3"}, {3, "func_4"}}));
  EXPECT_EQ(fake_.OpenLinkCnt(), 2u);
}

TEST_F(UpdateTest, AllOfALinkGo) {
  Attachment attachment = MustAttach(Make({{1}, {4, "drvx"}, {5, "drvx"}}));
  const UpdateReport report = MustUpdate(attachment, Make({{1}}));
  EXPECT_EQ(report.syscalls, 0u);
  EXPECT_EQ(report.dropped, 2u);
  EXPECT_EQ(report.links_closed, 1u);
  EXPECT_EQ(AttachedNow(), (Attached{{0, "func_1"}}));
  EXPECT_EQ(attachment.links().size(), 1u);

  EXPECT_EQ(MustUpdate(attachment, Make({})).dropped, 1u);
  EXPECT_EQ(fake_.OpenLinkCnt(), 0u);
  EXPECT_EQ(MustUpdate(attachment, Make({{1}})).added, 1u);
  EXPECT_EQ(AttachedNow(), (Attached{{3, "func_1"}}));
}

TEST_F(UpdateTest, SlotsAreNotUsedAgain) {
  Attachment attachment = MustAttach(Make({{1}, {2, "drvx"}}));
  for (uint32_t round = 0; round < 5; ++round) {
    MustUpdate(attachment, Make({{1}}));
    MustUpdate(attachment, Make({{1}, {2, "drvx"}}));
    ASSERT_EQ(attachment.targets().size(), 3 + round);
    EXPECT_EQ(AttachedNow(), (Attached{{0, "func_1"}, {2 + round, "func_2"}}));
  }
  EXPECT_EQ(fake_.OpenLinkCnt(), 2u);

  UpdateOptions options;
  options.max_slots = 7;
  const uint32_t calls = fake_.calls();
  const absl::Status status =
      attachment.Update(Make({{1}, {2, "drvx"}, {3}}), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("needs 8 slots"));
  EXPECT_EQ(fake_.calls(), calls);
  options.max_slots = 8;
  MustUpdate(attachment, Make({{1}, {2, "drvx"}, {3}}), options);
}

TEST_F(UpdateTest, CookiesAreThoseOfTheRequests) {
  Attachment attachment =
      MustAttach(Make({{1, "", 11}, {2, "", 12}, {3, "drvx", 13}}));
  // Of function 2 another one; 3 stays, so its link does.
  const UpdateReport report = MustUpdate(
      attachment,
      Make({{1, "", 11}, {2, "", 99}, {3, "drvx", 13}, {4, "", 14}}));
  EXPECT_EQ(report.recookied, 1u);
  EXPECT_EQ(report.kept, 3u);
  EXPECT_EQ(report.added, 1u);
  EXPECT_EQ(report.doubled, 2u);
  EXPECT_EQ(report.links_made, 2u);
  EXPECT_EQ(report.links_closed, 1u);
  EXPECT_EQ(
      AttachedNow(),
      (Attached{
          {11, "func_1"}, {99, "func_2"}, {13, "func_3"}, {14, "func_4"}}));
  EXPECT_THAT(attachment.targets(), ElementsAre(0, 1, 2, 3));

  // Without cookies it is the slot.
  MustUpdate(attachment, Make({{1}, {2}, {3, "drvx"}, {4}}));
  EXPECT_EQ(
      AttachedNow(),
      (Attached{{0, "func_1"}, {1, "func_2"}, {2, "func_3"}, {3, "func_4"}}));
}

TEST_F(UpdateTest, EachOfSeveralCookiesIsASlot) {
  Attachment attachment =
      MustAttach(Make({{1, "", 11, {12, 13}}, {2, "", 21}}));
  EXPECT_THAT(attachment.targets(), ElementsAre(0, 0, 0, 1));
  // 12 goes, 14 and 15 come: the first in the slot of 12, in its link.
  UpdateReport report =
      MustUpdate(attachment, Make({{1, "", 11, {13, 14, 15}}, {2, "", 21}}));
  EXPECT_EQ(report.recookied, 1u);
  EXPECT_EQ(report.added, 1u);
  EXPECT_THAT(attachment.targets(), ElementsAre(0, 0, 0, 1, 0));
  EXPECT_EQ(AttachedNow(), (Attached{{11, "func_1"},
                                     {13, "func_1"},
                                     {14, "func_1"},
                                     {15, "func_1"},
                                     {21, "func_2"}}));
  report = MustUpdate(attachment, Make({{1, "", 15}, {2, "", 21}}));
  EXPECT_EQ(report.dropped, 3u);
  EXPECT_THAT(attachment.targets(),
              ElementsAre(kNoTarget, kNoTarget, kNoTarget, 1, 0));
  EXPECT_EQ(AttachedNow(), (Attached{{15, "func_1"}, {21, "func_2"}}));
}

TEST_F(UpdateTest, AReloadedModuleIsAtItsNewAddresses) {
  ResolutionText text;
  text.Add(1);
  text.Add(2).module = "drvx";
  Attachment attachment = MustAttach(text.Build());
  ResolutionText reloaded;
  reloaded.Add(1);
  Target& moved = reloaded.Add(7);
  moved.module = "drvx";
  moved.name = "func_2";
  const UpdateReport report = MustUpdate(attachment, reloaded.Build());
  EXPECT_EQ(report.added, 1u);
  EXPECT_EQ(report.dropped, 1u);
  EXPECT_THAT(attachment.targets(), ElementsAre(0, kNoTarget, 1));
  EXPECT_EQ(AttachedNow(), (Attached{{0, "func_1"}, {2, "func_7"}}));
}

TEST_F(UpdateTest, PairsHaveReturnsBeforeEntries) {
  Attachment attachment = MustAttachPair(Make({{1}, {2}, {3, "drvx"}}, kPair));
  ASSERT_EQ(fake_.links().size(), 4u);
  const UpdateReport report =
      MustUpdate(attachment, Make({{1}, {3, "drvx"}, {4, "drvx"}}, kPair));
  EXPECT_EQ(report.syscalls, 4u);
  EXPECT_EQ(report.links_made, 4u);
  EXPECT_EQ(report.links_closed, 2u);
  EXPECT_EQ(report.added, 1u);
  EXPECT_EQ(report.doubled, 1u);
  const std::vector<FakeBpfSys::Link> links = fake_.links();
  for (size_t i = 4; i < 8; ++i) {
    EXPECT_EQ(links[i].flags, i < 6 ? kBpfKprobeMultiReturn : 0u) << i;
  }
  EXPECT_EQ(AttachedNow(), (Attached{{0, "r:func_1 func_1"},
                                     {2, "r:func_3 func_3"},
                                     {3, "r:func_4 func_4"}}));
  const AttachReport now = attachment.Report();
  ASSERT_EQ(now.kinds.size(), 2u);
  EXPECT_EQ(now.kinds[0].attached, 3u);
  EXPECT_EQ(now.kinds[0].links, 3u);
}

TEST_F(UpdateTest, AFunctionThatFitsAnotherProgramNowKeepsItsSlot) {
  Attachment attachment = MustAttachPair(Make({{1}, {2}}, kPair));
  UpdateReport report = MustUpdate(
      attachment,
      Make({{1}, {2, "", std::nullopt, {}, KindSet{Kind::kKprobeMulti}}},
           kPair));
  EXPECT_EQ(report.kept, 2u);
  EXPECT_EQ(AttachedNow(), (Attached{{0, "r:func_1 func_1"}, {1, "func_2"}}));
  report = MustUpdate(attachment, Make({{1}, {2}}, kPair));
  EXPECT_EQ(report.added, 0u);
  EXPECT_EQ(AttachedNow().size(), 2u);
  EXPECT_EQ(attachment.Report().kinds[1].attached, 2u);
  // None at all any more.
  MustUpdate(
      attachment,
      Make({{1}, {2, "", std::nullopt, {}, KindSet{Kind::kKprobe}}}, kPair));
  EXPECT_THAT(attachment.targets(), ElementsAre(0, kNoTarget));
}

TEST_F(UpdateTest, ReadyStaysUnlessAskedToPause) {
  bool ready = false;
  std::vector<bool> seen;
  options_.ready = &ready;
  Attachment attachment = MustAttach(Make({{1}}));
  EXPECT_TRUE(ready);
  UpdateOptions options;
  options.progress = [&](uint64_t, uint64_t) {
    seen.push_back(ready);
    return true;
  };
  MustUpdate(attachment, Make({{1}, {2}}), options);
  options.pause = true;
  MustUpdate(attachment, Make({{1}, {2}, {3}}), options);
  EXPECT_THAT(seen, ElementsAre(true, false));
  EXPECT_TRUE(ready);

  fake_.FailCall(fake_.calls(), EPERM);
  EXPECT_FALSE(attachment.Update(Make({{1}, {4}}), options).ok());
  EXPECT_TRUE(ready) << "also after a failure";

  options_.ready = nullptr;
  Attachment plain = MustAttach(Make({{1}}));
  EXPECT_EQ(plain.Update(Make({{1}}), options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(UpdateTest, ReleaseLetsAModuleGo) {
  options_.on_refused = OnRefused::kSkip;
  fake_.RefuseAddr(AddrOf(5), ENOENT);
  const Resolution resolution =
      Make({{1}, {2, "aaa"}, {3, "bbb"}, {4, "aaa"}, {5, "aaa"}}, kPair);
  Attachment attachment = MustAttachPair(resolution);
  const size_t fds = CountOpenFds();
  const uint32_t calls = fake_.calls();
  const auto report = attachment.Release("aaa");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(fake_.calls(), calls);
  EXPECT_EQ(report->dropped, 2u);
  EXPECT_EQ(report->kept, 2u);
  EXPECT_EQ(report->links_closed, 2u);
  EXPECT_EQ(CountOpenFds(), fds - 2);
  EXPECT_THAT(attachment.targets(),
              ElementsAre(0, kNoTarget, 2, kNoTarget, kNoTarget));
  EXPECT_EQ(attachment.refused()[0].target, kNoTarget);
  EXPECT_EQ(attachment.Report().attached, 2u);

  const absl::Status again = attachment.Release("aaa").status();
  EXPECT_EQ(again.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(again.message()), HasSubstr("module 'aaa'"));
  EXPECT_EQ(attachment.Release("").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(attachment.Release("aa").status().code(),
            absl::StatusCode::kNotFound);

  // The same module again, at the same addresses.
  EXPECT_EQ(MustUpdate(attachment, resolution).added, 2u);
  EXPECT_THAT(attachment.targets(),
              ElementsAre(0, kNoTarget, 2, kNoTarget, kNoTarget, 1, 3, 4));
}

TEST_F(UpdateTest, FunctionsByName) {
  const auto by_name = [](const std::vector<size_t>& numbers) {
    ResolutionText text;
    for (size_t number : numbers) text.Add(number).addr = 0;
    text.builder().set_by_name(true);
    return text.Build();
  };
  Attachment attachment = MustAttach(by_name({1, 2, 3}));
  const UpdateReport report = MustUpdate(attachment, by_name({1, 3, 4}));
  EXPECT_EQ(report.added, 1u);
  EXPECT_EQ(report.dropped, 1u);
  const std::vector<FakeBpfSys::Link> links = fake_.links();
  ASSERT_EQ(links.size(), 3u);
  EXPECT_THAT(links[1].names, ElementsAre("func_1", "func_3"));
  EXPECT_THAT(links[1].cookies, ElementsAre(0, 2));
  EXPECT_THAT(links[2].names, ElementsAre("func_4"));
  EXPECT_THAT(links[2].cookies, ElementsAre(3));
}

// Any sequence of resolutions leads to what attaching the last would give.
TEST_F(UpdateTest, RandomUpdates) {
  constexpr const char* kModules[] = {"", "aaa", "bbb"};
  std::mt19937 random(7);
  const auto pick = [&random](size_t cnt) { return random() % cnt; };
  const auto next = [&] {
    std::vector<Func> funcs;
    const bool cookies = pick(3) == 0;
    for (size_t i = 0; i < 12; ++i) {
      if (pick(3) == 0) continue;
      Func func{i, kModules[i % 3]};
      if (cookies) func.cookie = 100 * i + pick(2);
      if (cookies && pick(4) == 0) func.more_cookies = {100 * i + 50};
      funcs.push_back(func);
    }
    return Make(funcs);
  };
  for (int sequence = 0; sequence < 200; ++sequence) {
    SCOPED_TRACE(sequence);
    Attachment attachment = MustAttach(Make({{20}}));
    for (int step = 0; step < 6; ++step) {
      const std::vector<uint32_t> slots_before = attachment.targets();
      const Resolution newer = next();
      const UpdateReport report = MustUpdate(attachment, newer);
      std::set<std::pair<uint64_t, std::string>> want, have;
      for (const Target& target : newer.targets()) {
        const std::string name(target.name);
        if (newer.has_cookies()) want.emplace(target.cookie, name);
        for (uint64_t cookie : target.more_cookies) want.emplace(cookie, name);
      }
      size_t live = 0;
      for (uint32_t slot = 0; slot < attachment.targets().size(); ++slot) {
        const uint32_t target = attachment.targets()[slot];
        EXPECT_EQ(attachment.IsAttached(slot), target != kNoTarget);
        if (target == kNoTarget) continue;
        ++live;
        if (newer.has_cookies()) continue;
        want.emplace(slot, std::string(newer.targets()[target].name));
      }
      for (const auto& [cookie, name] : AttachedNow()) {
        have.emplace(cookie, name);
      }
      EXPECT_EQ(have, want);
      EXPECT_EQ(live, want.size());
      EXPECT_EQ(report.added + report.kept, live);
      for (size_t slot = 0; slot < slots_before.size(); ++slot) {
        if (slots_before[slot] != kNoTarget) continue;
        EXPECT_EQ(attachment.targets()[slot], kNoTarget) << "used again";
      }
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace ksweep
