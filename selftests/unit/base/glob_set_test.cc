#include "lib/base/glob_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/glob.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;

GlobSet SetOf(const std::vector<std::string>& patterns) {
  GlobSet set;
  for (const std::string& pattern : patterns) set.Add(pattern);
  return set;
}

std::vector<uint32_t> MatchesOf(const GlobSet& set, std::string_view name) {
  std::vector<uint32_t> indices;
  set.ForEachMatch(name, [&indices](uint32_t index) {
    indices.push_back(index);
    return true;
  });
  std::sort(indices.begin(), indices.end());
  return indices;
}

std::vector<uint32_t> Reference(const std::vector<std::string>& patterns,
                                std::string_view name) {
  std::vector<uint32_t> indices;
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (GlobMatch(patterns[i], name)) {
      indices.push_back(static_cast<uint32_t>(i));
    }
  }
  return indices;
}

void ExpectAsReference(const std::vector<std::string>& patterns,
                       const GlobSet& set, std::string_view name) {
  const std::vector<uint32_t> want = Reference(patterns, name);
  ASSERT_EQ(MatchesOf(set, name), want)
      << name << " in " << ::testing::PrintToString(patterns);
  ASSERT_EQ(set.MatchesAny(name), !want.empty()) << name;
}

TEST(GlobSet, EmptyMatchesNothing) {
  const GlobSet set;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.size(), 0u);
  EXPECT_FALSE(set.has_star());
  EXPECT_FALSE(set.MatchesAny(""));
  EXPECT_FALSE(set.MatchesAny("vfs_read"));
}

TEST(GlobSet, IndicesCountUp) {
  GlobSet set;
  EXPECT_EQ(set.Add("vfs_*"), 0u);
  EXPECT_EQ(set.Add("*_read"), 1u);
  EXPECT_EQ(set.Add("vfs_*"), 2u);  // a pattern may come again
  EXPECT_EQ(set.Add("*"), 3u);
  EXPECT_EQ(set.size(), 4u);
  EXPECT_FALSE(set.empty());
  EXPECT_THAT(MatchesOf(set, "vfs_read"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(MatchesOf(set, "vfs_write"), ElementsAre(0, 2, 3));
  EXPECT_THAT(MatchesOf(set, ""), ElementsAre(3));
}

struct StarCase {
  std::string_view pattern;
  bool want;
};

constexpr StarCase kStarCases[] = {
    {"*", true}, {"a*", false}, {"*a", false}, {"?*", false}, {"[a-z]*", false},
};

TEST(GlobSet, KnowsWhetherItHasAStar) {
  for (const StarCase& c : kStarCases) {
    GlobSet set;
    set.Add("vfs_read");
    set.Add(c.pattern);
    EXPECT_EQ(set.has_star(), c.want) << c.pattern;
  }
}

TEST(GlobSet, StopsWhenToldTo) {
  const GlobSet set = SetOf({"*", "v*", "vfs_*", "*d", "*_read", "?*"});
  for (int most = 1; most <= 6; ++most) {
    int calls = 0;
    set.ForEachMatch("vfs_read",
                     [&calls, most](uint32_t) { return ++calls < most; });
    EXPECT_EQ(calls, most);
  }
}

struct SetCase {
  std::string_view pattern;
  std::vector<std::string_view> matches, others;
};

// How a pattern is filed must not show.
TEST(GlobSet, Cases) {
  const SetCase kCases[] = {
      // Heads of one byte, of eight and of more.
      {"v*", {"v", "vfs"}, {"", "xv"}},
      {"vfs_read*", {"vfs_read", "vfs_readv"}, {"vfs_rea", "vfs_rexd"}},
      {"vfs_readv_*", {"vfs_readv_x"}, {"vfs_read", "vfs_readv"}},
      // No wildcard.
      {"vfs", {"vfs"}, {"vf", "vfs_", "xvfs"}},
      {"vfs_iter_read", {"vfs_iter_read"}, {"vfs_iter_reads", "vfs_iter"}},
      // Tails.
      {"*d", {"d", "read"}, {"", "reads"}},
      {"*vfs_read", {"vfs_read", "xvfs_read"}, {"fs_read"}},
      {"*_vfs_read", {"x_vfs_read"}, {"vfs_read", "xvfs_read"}},
      {"?x", {"ax"}, {"x", "aax"}},
      // Both ends have wildcards.
      {"*_q*", {"a_q", "_qa"}, {"q"}},
      {"**", {"", "a"}, {}},
      {"[a-c]*", {"a", "bx"}, {"d", ""}},
      // A `]` at the end is of a class, or is itself.
      {"*[a]", {"a", "xa"}, {"]", "a]"}},
      {"*[]]", {"]", "x]"}, {"x"}},
      {"[a]]", {"a]"}, {"a", "]"}},
      {"*a]", {"a]", "xa]"}, {"a"}},
      {"*[a]bc]", {"abc]"}, {"bc]", "abc"}},
      {"*[a]bc", {"abc"}, {"bc"}},
      {"*]x", {"]x", "a]x"}, {"x"}},
      {"a]*", {"a]", "a]b"}, {"a"}},
      // The shortest name shares all bytes of the head.
      {"ab*ab", {"abab", "abxab"}, {"ab", "aba"}},
  };
  for (const SetCase& c : kCases) {
    GlobSet set;
    ASSERT_EQ(CheckGlob(c.pattern), absl::OkStatus());
    set.Add(c.pattern);
    for (std::string_view name : c.matches) {
      EXPECT_TRUE(set.MatchesAny(name)) << c.pattern << " " << name;
    }
    for (std::string_view name : c.others) {
      EXPECT_FALSE(set.MatchesAny(name)) << c.pattern << " " << name;
    }
  }
}

std::string RandomText(std::string_view alphabet, size_t max,
                       std::mt19937* rng) {
  std::string text((*rng)() % (max + 1), '\0');
  for (char& c : text) c = alphabet[(*rng)() % alphabet.size()];
  return text;
}

std::vector<std::string> RandomPatterns(size_t cnt, size_t max,
                                        std::mt19937* rng) {
  std::vector<std::string> patterns;
  while (patterns.size() < cnt) {
    const std::string pattern = RandomText("aaab]*?[-\xff", max, rng);
    if (CheckGlob(pattern).ok()) patterns.push_back(pattern);
  }
  return patterns;
}

TEST(GlobSet, AsLoopingOverGlobMatch) {
  std::mt19937 rng(3);
  for (int round = 0; round < 300; ++round) {
    const std::vector<std::string> patterns =
        RandomPatterns(rng() % 40, 1 + rng() % 20, &rng);
    const GlobSet set = SetOf(patterns);
    for (int i = 0; i < 100; ++i) {
      ExpectAsReference(patterns, set, RandomText("aaab]-\xff", 14, &rng));
    }
  }
}

TEST(GlobSet, LiteralEndsOfEveryLength) {
  std::mt19937 rng(4);
  std::vector<std::string> patterns;
  for (size_t len = 0; len <= 20; ++len) {
    const std::string literal(len, 'a');
    for (const char* wild : {"*", "?", "[ab]", "[]a]"}) {
      patterns.push_back(literal + wild);
      patterns.push_back(wild + literal);
      patterns.push_back(wild + literal + wild);
    }
    if (len > 0) patterns.push_back(literal);
  }
  const GlobSet set = SetOf(patterns);
  for (size_t len = 0; len <= 24; ++len) {
    std::string name(len, 'a');
    ExpectAsReference(patterns, set, name);
    for (size_t i = 0; i < len; ++i) {
      name[i] = "b]\x80"[rng() % 3];
      ExpectAsReference(patterns, set, name);
      name[i] = 'a';
    }
  }
}

TEST(GlobSet, ManyPatternsWithOneHead) {
  std::vector<std::string> patterns;
  for (int i = 0; i < 5000; ++i) {
    patterns.push_back("tcp_func" + std::to_string(i) + "*");
  }
  const GlobSet set = SetOf(patterns);
  ExpectAsReference(patterns, set, "tcp_func4321_x");
  ExpectAsReference(patterns, set, "tcp_func");
  ExpectAsReference(patterns, set, "tcp_fun");
  ExpectAsReference(patterns, set, "udp_func1");
}

TEST(GlobSet, BugCase09_BytesAreNotCharacters) {
  const std::vector<std::string> patterns = {
      "drv_*", "drv_\xc3?_on", "*\xa9_on", "\xff*", "*\xfey", "x\xff\xfey"};
  const GlobSet set = SetOf(patterns);
  EXPECT_THAT(MatchesOf(set, "drv_\xc3\xa9_on"), ElementsAre(0, 1, 2));
  EXPECT_THAT(MatchesOf(set, "x\xff\xfey"), ElementsAre(4, 5));
  EXPECT_THAT(MatchesOf(set, "\xff"), ElementsAre(3));
  const std::string nul("drv_\0x", 6);
  EXPECT_THAT(MatchesOf(set, nul), ElementsAre(0));
}

}  // namespace
}  // namespace ksweep
