#include "calltrace/call_tree.h"

#include "gtest/gtest.h"
#include "selftests/unit/examples/calltrace/synthetic_calls.h"

namespace examples {
namespace {

using testing::CallAt;
using testing::Collected;
using testing::RootAt;

enum : uint32_t { kA, kB, kC, kD };

TEST(CallTrees, NestsCallsThatComeInTheOrderOfTheirReturns) {
  Collected got;
  got.builder.Add(CallAt(2, kC, 20, 30));
  got.builder.Add(CallAt(1, kB, 10, 40));
  got.builder.Add(CallAt(1, kD, 50, 60));
  EXPECT_TRUE(got.trees.empty());
  got.builder.AddRoot(RootAt(kA, 0, 100, 4), "cat");
  ASSERT_EQ(got.trees.size(), 1u);
  EXPECT_EQ(got.shape(), "a(b(c) d)");
  EXPECT_EQ(got.trees[0].comm, "cat");
  EXPECT_EQ(got.trees[0].pid, 40u);
  EXPECT_EQ(got.trees[0].thread, testing::kThread);
  EXPECT_EQ(got.trees[0].lost, 0u);
  EXPECT_EQ(got.trees[0].calls[1].duration_ns(), 30u);
  EXPECT_EQ(got.builder.tree_cnt(), 1u);
  EXPECT_EQ(got.builder.call_cnt(), 4u);
}

TEST(CallTrees, RecursionIsNesting) {
  Collected got;
  got.builder.Add(CallAt(3, kA, 30, 40));
  got.builder.Add(CallAt(2, kA, 20, 50));
  got.builder.Add(CallAt(1, kA, 10, 60));
  got.builder.AddRoot(RootAt(kA, 0, 70, 4), "cat");
  EXPECT_EQ(got.shape(), "a(a(a(a)))");
}

TEST(CallTrees, AClockThatStandsStill) {
  Collected got;
  got.builder.Add(CallAt(2, kC, 10, 10));
  got.builder.Add(CallAt(1, kB, 10, 10));
  got.builder.Add(CallAt(1, kD, 10, 10));
  got.builder.AddRoot(RootAt(kA, 10, 10, 4), "cat");
  ASSERT_EQ(got.trees.size(), 1u);
  // Which of b and d made the call of c cannot be known.
  EXPECT_EQ(got.trees[0].calls.size(), 4u);
  EXPECT_EQ(got.trees[0].calls[0].slot, kA);
  EXPECT_EQ(got.trees[0].calls[3].slot, kC);
}

// Two threads on one CPU, one preempting the other; and one thread that moves.
TEST(CallTrees, ThreadsAreApartWhereverTheyRun) {
  Collected got;
  calltrace_call other_child = CallAt(1, kD, 12, 18);
  calltrace_call other_root = RootAt(kC, 11, 19, 2);
  other_child.thread = other_root.thread = 43;
  calltrace_call moved = CallAt(1, kB, 10, 30);
  moved.cpu = 7;
  got.builder.Add(other_child);
  got.builder.AddRoot(other_root, "other");
  got.builder.Add(moved);
  got.builder.AddRoot(RootAt(kA, 0, 40, 2), "cat");
  ASSERT_EQ(got.trees.size(), 2u);
  EXPECT_EQ(got.shape(0), "c(d)");
  EXPECT_EQ(got.shape(1), "a(b)");
  EXPECT_EQ(got.trees[1].calls[1].cpu, 7);
  EXPECT_EQ(got.trees[1].calls[0].cpu, 0);
}

TEST(CallTrees, OneTreeAfterTheOther) {
  Collected got;
  got.builder.Add(CallAt(1, kB, 10, 20));
  got.builder.AddRoot(RootAt(kA, 0, 30, 2), "cat");
  got.builder.Add(CallAt(1, kC, 50, 60));
  got.builder.AddRoot(RootAt(kA, 40, 70, 2), "cat");
  EXPECT_EQ(got.shape(0), "a(b)");
  EXPECT_EQ(got.shape(1), "a(c)");
}

// The record of b is lost: c is shown below a, and d is not below c although it
// was deeper.
TEST(CallTrees, ALostCallerLeavesWhatItCalled) {
  Collected got;
  got.builder.Add(CallAt(2, kC, 20, 30));
  got.builder.Add(CallAt(3, kD, 32, 34));
  got.builder.AddRoot(RootAt(kA, 0, 100, 4), "cat");
  EXPECT_EQ(got.shape(), "a(c d)");
  EXPECT_EQ(got.trees[0].lost, 1u);
  EXPECT_EQ(got.trees[0].calls[2].depth, 1u);
}

TEST(CallTrees, ALostRootIsNotMixedWithTheNext) {
  Collected got;
  got.builder.Add(CallAt(1, kB, 10, 20));  // of a root that never comes
  got.builder.Add(CallAt(1, kC, 50, 60));
  got.builder.AddRoot(RootAt(kA, 40, 70, 2), "cat");
  EXPECT_EQ(got.shape(), "a(c)");
  EXPECT_EQ(got.trees[0].lost, 0u);
}

TEST(CallTrees, AMissedReturnEndsWithTheLastCallBelow) {
  Collected got;
  got.builder.Add(CallAt(2, kC, 20, 30));
  got.builder.Add(CallAt(1, kB, 10, 0));
  got.builder.Add(CallAt(1, kD, 40, 50));
  got.builder.AddRoot(RootAt(kA, 0, 100, 4), "cat");
  EXPECT_EQ(got.shape(), "a(b(c) d)");
  EXPECT_EQ(got.trees[0].calls[1].end, CallEnd::kMissed);
  EXPECT_EQ(got.trees[0].calls[1].end_ns, 30u);
  EXPECT_EQ(got.trees[0].calls[2].end, CallEnd::kReturned);
  EXPECT_EQ(got.builder.missed_cnt(), 1u);
}

TEST(CallTrees, AMissedRoot) {
  Collected got;
  got.builder.Add(CallAt(1, kB, 10, 20));
  got.builder.AddRoot(RootAt(kA, 0, 0, 2), "cat");
  EXPECT_EQ(got.shape(), "a(b)");
  EXPECT_EQ(got.trees[0].calls[0].end, CallEnd::kMissed);
  EXPECT_EQ(got.trees[0].calls[0].duration_ns(), 20u);
}

TEST(CallTrees, WhatIsNotOverAtTheEnd) {
  Collected got;
  got.builder.Add(CallAt(1, kB, 10, 20));
  calltrace_thread state = {};
  state.pid = 40;
  state.depth = 2;
  state.call_cnt = 3;
  state.open[0].slot = kA;
  state.open[0].start_ns = 5;
  state.open[1].slot = kC;
  state.open[1].start_ns = 30;
  got.builder.AddRunning(testing::kThread, state, "sleep", 90);
  ASSERT_EQ(got.trees.size(), 1u);
  EXPECT_EQ(got.shape(), "a(b c)");
  EXPECT_EQ(got.trees[0].calls[0].end, CallEnd::kRunning);
  EXPECT_EQ(got.trees[0].calls[0].duration_ns(), 85u);
  EXPECT_EQ(got.trees[0].calls[1].end, CallEnd::kReturned);
  EXPECT_EQ(got.trees[0].calls[2].duration_ns(), 60u);
  EXPECT_EQ(got.trees[0].lost, 0u);
  EXPECT_EQ(got.trees[0].comm, "sleep");
}

TEST(CallTrees, NoThreadWithoutAnOpenCall) {
  Collected got;
  got.builder.AddRunning(testing::kThread, calltrace_thread{}, "sleep", 90);
  EXPECT_TRUE(got.trees.empty());
}

TEST(CallTrees, ATreeThatIsTooBigLosesItsLastCalls) {
  std::vector<CallTree> trees;
  CallTrees builder([&](const CallTree& tree) { trees.push_back(tree); }, 2);
  for (uint64_t i = 1; i <= 5; ++i) {
    builder.Add(CallAt(1, kB, 10 * i, 10 * i + 5));
  }
  builder.AddRoot(RootAt(kA, 0, 100, 6), "cat");
  ASSERT_EQ(trees.size(), 1u);
  EXPECT_EQ(testing::Shape(trees[0]), "a(b b)");
  EXPECT_EQ(trees[0].lost, 3u);
}

}  // namespace
}  // namespace examples
