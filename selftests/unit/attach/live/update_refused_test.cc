// Updates that the kernel refuses in part, or that fail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "ksweep/attach.h"
#include "ksweep/status.h"
#include "selftests/unit/attach/live/update_fixture.h"

namespace ksweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class UpdateRefusedTest : public UpdateTest {};

TEST_F(UpdateRefusedTest, RefusedOnesFollowThePolicy) {
  Attachment attachment = MustAttach(Make({{1}, {2}}));
  fake_.RefuseAddr(AddrOf(4), ENOENT);
  const Resolution newer = Make({{1}, {2}, {3, "drvx"}, {4, "drvx"}});
  const absl::Status status = attachment.Update(newer).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrnoOf(status), ENOENT);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("not updated, the attachment is as before"),
                    HasSubstr("func_4 [drvx]")));
  EXPECT_EQ(AttachedNow(), (Attached{{0, "func_1"}, {1, "func_2"}}));
  EXPECT_EQ(attachment.targets().size(), 2u);
}

TEST_F(UpdateRefusedTest, RefusedOnesStaySoUntilTriedAgain) {
  options_.on_refused = OnRefused::kSkip;
  fake_.RefuseAddr(AddrOf(2), ENOENT);
  Attachment attachment = MustAttach(Make({{1}, {2}, {3}}));
  ASSERT_EQ(attachment.refused().size(), 1u);
  // Alone in its module, refused: that it is not the call is known.
  fake_.RefuseAddr(AddrOf(4), EINVAL);
  const Resolution newer = Make({{0}, {1}, {2}, {3}, {4, "drvx"}});
  UpdateReport report = MustUpdate(attachment, newer);
  EXPECT_EQ(report.added, 1u);
  ASSERT_EQ(report.refused.size(), 1u);
  EXPECT_EQ(report.refused[0].slot, 4u);
  EXPECT_EQ(report.refused[0].err, EINVAL);
  EXPECT_THAT(report.ToString(), HasSubstr("refused func_4 [drvx]"));
  ASSERT_EQ(attachment.refused().size(), 2u);
  EXPECT_EQ(attachment.refused()[0].slot, 1u);
  EXPECT_EQ(attachment.refused()[0].target, 2u) << "in the new resolution";

  fake_.RefuseAddr(AddrOf(2), 0);
  const uint32_t calls = fake_.calls();
  MustUpdate(attachment, newer);
  EXPECT_EQ(fake_.calls(), calls);

  UpdateOptions options;
  options.retry_refused = true;
  report = MustUpdate(attachment, newer, options);
  EXPECT_EQ(report.added, 1u);
  EXPECT_EQ(report.refused.size(), 1u);
  ASSERT_EQ(attachment.refused().size(), 1u);
  EXPECT_EQ(attachment.refused()[0].slot, 4u);
  EXPECT_TRUE(attachment.IsAttached(1));
  EXPECT_EQ(
      AttachedNow(),
      (Attached{{0, "func_1"}, {1, "func_2"}, {2, "func_3"}, {3, "func_0"}}));

  // Gone with its module, its entry stays by slot.
  MustUpdate(attachment, Make({{0}, {1}, {2}, {3}}));
  ASSERT_EQ(attachment.refused().size(), 1u);
  EXPECT_EQ(attachment.refused()[0].target, kNoTarget);
}

// Refused at the entry, after the return was attached.
TEST_F(UpdateRefusedTest, RefusedAtTheEntryOnly) {
  options_.on_refused = OnRefused::kSkip;
  Attachment attachment = MustAttachPair(Make({{1}, {2}}, kPair));
  // The return of 3, its entry together with 4, alone, 4 alone.
  const uint32_t calls = fake_.calls();
  fake_.FailCall(calls + 1, ENOENT);
  fake_.FailCall(calls + 2, ENOENT);
  MustUpdate(attachment, Make({{1}, {2}, {3, "drvx"}, {4, "drvx"}}, kPair));
  ASSERT_EQ(attachment.refused().size(), 1u);
  const uint32_t slot = attachment.refused()[0].slot;
  EXPECT_FALSE(attachment.IsAttached(slot));

  // Its return stays with the others of the link.
  MustUpdate(attachment, Make({{1}, {2}, {3, "drvx"}, {4, "drvx"}}, kPair));
  EXPECT_FALSE(attachment.IsAttached(slot));
  MustUpdate(attachment, Make({{1}, {2}}, kPair));
  EXPECT_EQ(AttachedNow(),
            (Attached{{0, "r:func_1 func_1"}, {1, "r:func_2 func_2"}}));
}

TEST_F(UpdateRefusedTest, ProgressStopsIt) {
  Attachment attachment = MustAttach(Make({{1}, {2}, {3}}));
  UpdateOptions options;
  uint64_t total = 0;
  options.progress = [&](uint64_t, uint64_t all) {
    total = all;
    return false;
  };
  const absl::Status status =
      attachment.Update(Make({{1}, {2}, {4}, {5, "drvx"}}), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(total, 4u) << "two are linked again, two are new";
  EXPECT_EQ(AttachedNow(),
            (Attached{{0, "func_1"}, {1, "func_2"}, {2, "func_3"}}));
}

TEST_F(UpdateRefusedTest, FailsWithoutWhatItNeeds) {
  options_.updatable = false;
  Attachment fixed = MustAttach(Make({{1}}));
  absl::Status status = fixed.Update(Make({{1}, {2}})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("AttachOptions::updatable"));
  EXPECT_EQ(fixed.Release("drvx").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Attachment().Update(Make({})).status().code(),
            absl::StatusCode::kFailedPrecondition);

  options_.updatable = true;
  Attachment attachment = MustAttach(Make({{1}}));
  status = attachment.Update(Make({{1}}, {Kind::kKprobe})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("not made for kprobe.multi"));
  ASSERT_TRUE(attachment.Detach().ok());
  EXPECT_EQ(attachment.Update(Make({{1}})).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// Each call of a large update fails once, with an errno that is about the call.
TEST_F(UpdateRefusedTest, WhateverFailsAllIsAsBefore) {
  const Resolution before =
      Make({{1}, {2}, {3}, {4, "aaa"}, {5, "aaa"}, {6, "bbb"}}, kPair);
  const Resolution after =
      Make({{1}, {3}, {4, "aaa"}, {7, "aaa"}, {8}, {9, "ccc"}}, kPair);
  uint32_t failures = 0;
  for (uint32_t call = 0;; ++call) {
    SCOPED_TRACE(call);
    {
      Attachment attachment = MustAttachPair(before);
      const Attached was = AttachedNow();
      const std::vector<uint32_t> targets = attachment.targets();
      const size_t fds = CountOpenFds();
      const uint32_t calls = fake_.calls();
      fake_.FailCall(calls + call, call % 2 == 0 ? EPERM : EMFILE);
      const auto report = attachment.Update(after);
      if (report.ok()) {
        EXPECT_EQ(call, report->syscalls) << "no call was left to fail";
        break;
      }
      ++failures;
      EXPECT_EQ(fake_.calls(), calls + call + 1);
      EXPECT_EQ(AttachedNow(), was);
      EXPECT_EQ(CountOpenFds(), fds);
      EXPECT_EQ(attachment.targets(), targets);
      EXPECT_EQ(attachment.links().size(), 6u);
      EXPECT_EQ(&attachment.resolution().targets(), &before.targets());

      // And it can be tried again.
      fake_.FailCall(calls + call, 0);
      EXPECT_EQ(MustUpdate(attachment, after).added, 3u);
    }
    EXPECT_EQ(CountOpenFds(), fds_before_);
    ASSERT_LT(call, 100u);
  }
  EXPECT_EQ(failures, 10u);
  fake_.FailCall(fake_.calls(), 0);
}

}  // namespace
}  // namespace ksweep
