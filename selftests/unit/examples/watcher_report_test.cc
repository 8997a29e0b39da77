#include "watcher_report.h"

#include "gtest/gtest.h"

namespace examples {
namespace {

TEST(ChangeLines, EachModuleThatHasMoreOrFewer) {
  const AttachedCounts before = {{"", 1}, {"dummy", 7}, {"same", 3}, {"nf", 4}};
  const AttachedCounts after = {{"", 2}, {"same", 3}, {"nf", 3}, {"veth", 12}};
  EXPECT_EQ(ChangeLines(before, after, "released"),
            "+ vmlinux: 1 function attached\n"
            "- dummy: released\n"
            "- nf: released\n"
            "+ veth: 12 functions attached\n");
}

TEST(ChangeLines, NothingChanged) {
  EXPECT_EQ(ChangeLines({{"dummy", 7}}, {{"dummy", 7}}, "released"), "");
  EXPECT_EQ(ChangeLines({}, {}, "released"), "");
}

TEST(WatchText, NothingWasEverAttached) {
  WatchResult result;
  result.seconds = 1.25;
  result.polls = 2;
  result.sweeps = 1;
  EXPECT_EQ(WatchText(SlotOwners(), result),
            "\nMODULE  TIMES  SLOTS  CALLS\n"
            "\n1.2 s, 2 looks at the module list, 1 sweep of kallsyms\n");
  EXPECT_EQ(WatchJson(SlotOwners(), result),
            "{\"modules\":[],\n"
            "\"seconds\":1.250,\"polls\":2,\"sweeps\":1}\n");
}

}  // namespace
}  // namespace examples
