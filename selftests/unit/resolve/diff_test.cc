// What a newer resolution adds, drops, keeps, and what moved.

#include "ksweep/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/resolve/resolution_builder.h"
#include "selftests/unit/resolve/resolve_fixture.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Lists;
using testing::MustResolve;

constexpr std::string_view kCore =
    "ffffffff81000000 T vfs_read\n"
    "ffffffff81000040 T vfs_write\n"
    "ffffffff81000080 t twice\n"
    "ffffffff810000c0 t twice\n";

Lists WithModule(std::string_view module_lines) {
  return {std::string(kCore) + std::string(module_lines)};
}

TEST(Diff, OfTheSameIsEmpty) {
  const Resolution r = MustResolve(WithModule(""), {"*"});
  const ResolutionDiff diff = Diff(r, r);
  EXPECT_TRUE(diff.empty());
  EXPECT_THAT(diff.kept, ElementsAre(TargetPair{0, 0}, TargetPair{1, 1},
                                     TargetPair{2, 2}, TargetPair{3, 3}));
  EXPECT_TRUE(Diff(Resolution(), Resolution()).empty());
}

TEST(Diff, BugCase65_AModuleLoadedAfterTheFirstResolve) {
  const Resolution before = MustResolve(WithModule(""), {"drvx:*", "vfs_*"});
  ASSERT_EQ(before.unmatched().size(), 1u);
  EXPECT_EQ(before.unmatched()[0].reason, Reason::kModuleNotLoaded);

  const Resolution after =
      MustResolve(WithModule("ffffffffc0000000 t drvx_open\t[drvx]\n"
                             "ffffffffc0000040 t drvx_close\t[drvx]\n"),
                  {"drvx:*", "vfs_*"});
  const ResolutionDiff loaded = Diff(before, after);
  EXPECT_THAT(loaded.added, ElementsAre(2, 3));
  EXPECT_THAT(loaded.dropped, IsEmpty());
  EXPECT_THAT(loaded.kept, ElementsAre(TargetPair{0, 0}, TargetPair{1, 1}));
  EXPECT_FALSE(loaded.empty());

  const ResolutionDiff unloaded = Diff(after, before);
  EXPECT_THAT(unloaded.dropped, ElementsAre(2, 3));
  EXPECT_THAT(unloaded.added, IsEmpty());
}

TEST(Diff, AModuleLoadedAgainMoves) {
  const Resolution before =
      MustResolve(WithModule("ffffffffc0000000 t drvx_open\t[drvx]\n"
                             "ffffffffc0000040 t twice\t[drvx]\n"
                             "ffffffffc0000080 t twice\t[drvx]\n"
                             "ffffffffc00000c0 t gone\t[drvx]\n"),
                  {"drvx:*"});
  // Overlaps the old place.
  const Resolution after =
      MustResolve(WithModule("ffffffffc0000040 t drvx_open\t[drvx]\n"
                             "ffffffffc0000080 t other\t[drvx]\n"
                             "ffffffffc0001040 t twice\t[drvx]\n"
                             "ffffffffc0001080 t twice\t[drvx]\n"),
                  {"drvx:*"});
  const ResolutionDiff diff = Diff(before, after);
  EXPECT_THAT(diff.moved, ElementsAre(TargetPair{0, 0}, TargetPair{1, 2},
                                      TargetPair{2, 3}));
  EXPECT_THAT(diff.added, ElementsAre(1));
  EXPECT_THAT(diff.dropped, ElementsAre(3));
  EXPECT_THAT(diff.kept, IsEmpty());
}

TEST(Diff, TheSameFunctionByAnotherOfItsNames) {
  const Lists lists = {
      "ffffffff81000000 T sys_read\n"
      "ffffffff81000000 T __x64_sys_read\n"};
  const Resolution one = MustResolve(lists, {"sys_read"});
  const Resolution other = MustResolve(lists, {"__x64_sys_read"});
  ASSERT_NE(one.targets()[0].name, other.targets()[0].name);
  EXPECT_TRUE(Diff(one, other).empty());
}

TEST(Diff, TheSameNameInAnotherOwnerIsAnotherFunction) {
  const Resolution before =
      MustResolve(WithModule("ffffffffc0000000 t probe\t[aa]\n"), {"*:probe"});
  const Resolution after =
      MustResolve(WithModule("ffffffffc0000000 t probe\t[bb]\n"), {"*:probe"});
  const ResolutionDiff diff = Diff(before, after);
  EXPECT_THAT(diff.added, ElementsAre(0));
  EXPECT_THAT(diff.dropped, ElementsAre(0));
  EXPECT_THAT(diff.moved, IsEmpty());
}

// Few names, owners and addresses, so that all cases come up often.
class RandomResolutions {
 public:
  explicit RandomResolutions(uint32_t seed) : random_(seed) {}

  Resolution Next(bool by_name) {
    std::map<std::pair<uint64_t, std::string>, std::string> functions;
    const size_t cnt = Pick(12);
    for (size_t i = 0; i < cnt; ++i) {
      const size_t owner = Pick(3);
      functions[{0x1000 * owner + 16 * Pick(6), kOwners[owner]}] =
          kNames[Pick(4)];
    }
    ResolutionBuilder builder({}, {Kind::kKprobeMulti});
    for (const auto& [place, name] : functions) {
      Target target;
      target.addr = by_name ? 0 : place.first;
      target.module = builder.text().Copy(place.second);
      target.name = builder.text().Copy(name);
      builder.targets().push_back(target);
    }
    if (by_name) SortAndMakeUnique(&builder.targets());
    builder.set_by_name(by_name);
    return std::move(builder).Build();
  }

 private:
  static constexpr const char* kOwners[] = {"", "m1", "m2"};
  static constexpr const char* kNames[] = {"aa", "ab", "ba", "bb"};

  static void SortAndMakeUnique(std::vector<Target>* targets) {
    const auto key = [](const Target& t) {
      return std::pair(t.module, t.name);
    };
    std::sort(
        targets->begin(), targets->end(),
        [&](const Target& a, const Target& b) { return key(a) < key(b); });
    targets->erase(std::unique(targets->begin(), targets->end(),
                               [&](const Target& a, const Target& b) {
                                 return key(a) == key(b);
                               }),
                   targets->end());
  }

  size_t Pick(size_t cnt) { return random_() % cnt; }

  std::mt19937 random_;
};

std::vector<TargetPair> Mirrored(std::vector<TargetPair> pairs) {
  for (TargetPair& pair : pairs) std::swap(pair.older, pair.newer);
  std::sort(pairs.begin(), pairs.end(),
            [](const TargetPair& a, const TargetPair& b) {
              return a.newer < b.newer;
            });
  return pairs;
}

// Each index below `cnt` in exactly one of the lists.
void ExpectPartition(size_t cnt, const std::vector<uint32_t>& singles,
                     const ResolutionDiff& diff, uint32_t TargetPair::*member) {
  EXPECT_TRUE(std::is_sorted(singles.begin(), singles.end()));
  std::multiset<uint32_t> all(singles.begin(), singles.end());
  for (const TargetPair& pair : diff.kept) all.insert(pair.*member);
  for (const TargetPair& pair : diff.moved) all.insert(pair.*member);
  std::multiset<uint32_t> want;
  for (uint32_t i = 0; i < cnt; ++i) want.insert(i);
  EXPECT_EQ(all, want);
}

bool SamePlace(const Target& a, const Target& b) {
  return a.addr == b.addr && a.module == b.module && a.name == b.name;
}

bool SameName(const Target& a, const Target& b) {
  return a.module == b.module && a.name == b.name;
}

// Every pair and every single one, by looking at all combinations.
void ExpectRight(const Resolution& older, const Resolution& newer,
                 const ResolutionDiff& diff) {
  for (const TargetPair& pair : diff.kept) {
    EXPECT_TRUE(
        SamePlace(older.targets()[pair.older], newer.targets()[pair.newer]));
  }
  for (const TargetPair& pair : diff.moved) {
    const Target& before = older.targets()[pair.older];
    const Target& after = newer.targets()[pair.newer];
    EXPECT_TRUE(SameName(before, after));
    EXPECT_NE(before.addr, after.addr);
  }
  for (uint32_t added : diff.added) {
    for (const Target& before : older.targets()) {
      EXPECT_FALSE(SamePlace(before, newer.targets()[added]));
    }
    for (uint32_t dropped : diff.dropped) {
      EXPECT_FALSE(SameName(older.targets()[dropped], newer.targets()[added]));
    }
  }
  for (uint32_t dropped : diff.dropped) {
    for (const Target& after : newer.targets()) {
      EXPECT_FALSE(SamePlace(older.targets()[dropped], after));
    }
  }
}

TEST(DiffProperties, RandomResolutions) {
  size_t moved = 0, kept = 0, added = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    RandomResolutions random(seed);
    const bool by_name = seed % 4 == 0;
    const Resolution older = random.Next(by_name);
    const Resolution newer = random.Next(by_name);
    const ResolutionDiff diff = Diff(older, newer);
    ExpectPartition(older.targets().size(), diff.dropped, diff,
                    &TargetPair::older);
    ExpectPartition(newer.targets().size(), diff.added, diff,
                    &TargetPair::newer);
    ExpectRight(older, newer, diff);
    EXPECT_TRUE(Diff(newer, newer).empty());

    const ResolutionDiff back = Diff(newer, older);
    EXPECT_EQ(back.added, diff.dropped);
    EXPECT_EQ(back.dropped, diff.added);
    EXPECT_EQ(back.kept, Mirrored(diff.kept));
    EXPECT_EQ(back.moved, Mirrored(diff.moved));
    EXPECT_TRUE(!by_name || diff.moved.empty());
    moved += diff.moved.size();
    kept += diff.kept.size();
    added += diff.added.size();
    if (::testing::Test::HasFailure()) return;
  }
  // All cases come up.
  EXPECT_GT(moved, 1000u);
  EXPECT_GT(kept, 1000u);
  EXPECT_GT(added, 1000u);
}

TEST(Diff, ByNameAgainstAddressesComparesNames) {
  const Lists hidden = {
      "0000000000000000 T vfs_read\n"
      "0000000000000000 T vfs_write\n",
      "none", "vfs_read\nvfs_write\n"};
  const Resolution by_name = MustResolve(hidden, {"vfs_read", "vfs_write"});
  ASSERT_TRUE(by_name.by_name());
  const Resolution by_address = MustResolve(WithModule(""), {"vfs_*"});
  const ResolutionDiff diff = Diff(by_name, by_address);
  EXPECT_TRUE(diff.empty());
  EXPECT_EQ(diff.kept.size(), 2u);
}

}  // namespace
}  // namespace ksweep
