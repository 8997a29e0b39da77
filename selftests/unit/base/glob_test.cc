#include "lib/base/glob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "selftests/unit/base/glob_reference.h"

namespace ksweep {
namespace {

using ::testing::HasSubstr;

struct GlobCase {
  std::string_view pattern, text;
  bool want;
};

constexpr GlobCase kGlobCases[] = {
    {"vfs_read", "vfs_read", true},
    {"vfs_read", "vfs_rea", false},
    {"vfs_read", "vfs_reads", false},
    {"vfs_read", "", false},
    {"VFS_read", "vfs_read", false},
    {".", "x", false},  // no regular expression
    {"a+", "aa", false},
    {"\\*", "\\x", true},  // nothing escapes a star
    // Stars.
    {"*", "", true},
    {"*", "vfs_read", true},
    {"***", "", true},
    {"vfs_*", "vfs_", true},
    {"vfs_*", "vfs_read", true},
    {"vfs_*", "xvfs_read", false},
    {"*_read", "vfs_read", true},
    {"*_read", "vfs_reads", false},
    {"*_read", "_read", true},
    {"v*d", "vfs_read", true},
    {"v*d", "vd", true},
    {"v*d", "v", false},
    {"*a*", "a", true},
    {"a*a", "a", false},
    {"*ab*ab", "abab", true},
    {"*ab*ab", "ab", false},
    {"*aab", "aaaab", true},
    {"a*b*c", "axbxbxc", true},
    {"a*b*c", "axcxb", false},
    // Question marks.
    {"?", "", false},
    {"?", "x", true},
    {"?", "xy", false},
    {"vfs_?", "vfs_q", true},
    {"vfs_?", "vfs_read", false},
    {"??*", "a", false},
    {"*??", "ab", true},
    {"*?*?*", "a", false},
    // Classes.
    {"[abc]x", "bx", true},
    {"[abc]x", "dx", false},
    {"[a-c]x", "bx", true},
    {"[a-c]x", "-x", false},
    {"[a-cx-z]", "y", true},
    {"[a-cx-z]", "d", false},
    {"[!a-c]", "d", true},
    {"[!a-c]", "a", false},
    {"[^a-c]", "d", true},
    {"[^a-c]", "c", false},
    {"[!a]", "", false},
    {"[a!]", "!", true},
    {"[a^]", "^", true},
    {"[!!]", "!", false},
    {"[^^]", "x", true},
    {"[-a]", "-", true},
    {"[a-]", "-", true},
    {"[a-]", "b", false},
    {"[!-]", "-", false},
    {"[a-a]", "a", true},
    {"[a-b-c]", "-", true},
    {"[a-b-c]", "c", true},
    {"[+--]", ",", true},
    {"[]]", "]", true},
    {"[]a]", "a", true},
    {"[!]a]", "]", false},
    {"[!]a]", "b", true},
    {"[]-a]", "_", true},
    {"[]-]", "-", true},
    {"[a]]", "a]", true},
    {"[a]]", "]", false},
    {"[[]", "[", true},
    {"[*]", "*", true},
    {"[*]", "x", false},
    {"[?]x", "?x", true},
    {"[\\]]", "\\]", true},
    {"]", "]", true},
    {"a]b", "a]b", true},
    {"*[0-9]", "foo.isra.12", true},
    {"*[0-9]", "foo.isra", false},
    {"*.[ic]*.[0-9]", "foo.isra.0", true},
    {"[a-c]*_lock", "b_spin_lock", true},
    {"[a-c]*_lock", "d_spin_lock", false},
    {"*[!_]lock", "spin_lock", false},
    {"*[!_]lock", "spinlock", true},
    // Text with the characters of patterns.
    {"a*c", "a*c", true},
    {"a?c", "a?c", true},
    {"*", "*[]?", true},
    // Former bugs.
    {"*a*a*a*b", "aaaaaaaaaaaaaaaa", false},
    {"vfs_q", "vfs_q2", false},              // 36: a match is of the whole name
    {"vfs_q", "my_vfs_q", false},            // 36
    {"vfs_?", "vfs_q", true},                // 36
    {"vfs_?", "my_vfs_q", false},            // 36
    {"*vfs_q", "vfs_q", true},               // 36
    {"*vfs_q", "my_vfs_q", true},            // 36
    {"*vfs_q", "vfs_q2", false},             // 36
    {"drv_*", "drv_\xc3\xa9_on", true},      // 9: bytes, not characters
    {"drv_?_on", "drv_\xc3\xa9_on", false},  // 9
    {"drv_??_on", "drv_\xc3\xa9_on", true},  // 9
    {"x\xff\xfey", "x\xff\xfey", true},      // 9
    {"x[\xf0-\xff]?y", "x\xff\xfey", true},  // 9: ranges do not end at 0x7f
    {"[a-\xff]", "\x80", true},              // 9
    {"[!a]", "\x80", true},                  // 9
    {"[\x80-\xff]", "a", false},             // 9
};

TEST(GlobMatch, Cases) {
  for (const GlobCase& c : kGlobCases) {
    EXPECT_EQ(CheckGlob(c.pattern), absl::OkStatus());
    EXPECT_EQ(GlobMatch(c.pattern, c.text), c.want)
        << c.pattern << " " << c.text;
  }
}

TEST(GlobMatch, NulIsAByteLikeOthers) {
  const std::string name("a\0b", 3);
  EXPECT_TRUE(GlobMatch("a?b", name));
  EXPECT_TRUE(GlobMatch("*b", name));
  EXPECT_TRUE(GlobMatch(name, name));
  EXPECT_FALSE(GlobMatch("a", name));
  EXPECT_FALSE(GlobMatch(name, "ab"));
}

TEST(GlobMatch, BugCase09_EveryByteIsOneQuestionMark) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = {'a', static_cast<char>(byte), 'b'};
    EXPECT_TRUE(GlobMatch("a?b", text)) << byte;
    EXPECT_FALSE(GlobMatch("a??b", text)) << byte;
  }
}

// Calls check(text) for every text over `alphabet` of up to `max` bytes.
template <typename Check>
void ForEachText(std::string_view alphabet, size_t max, Check check) {
  std::vector<std::string> texts = {""};
  for (size_t len = 0;; ++len) {
    for (const std::string& text : texts) check(text);
    if (len == max) return;
    std::vector<std::string> longer;
    for (const std::string& text : texts) {
      for (char c : alphabet) longer.push_back(text + c);
    }
    texts = std::move(longer);
  }
}

TEST(GlobMatch, EveryShortPatternAsTheReference) {
  std::vector<std::string> texts;
  ForEachText("a-]", 3, [&texts](const std::string& t) { texts.push_back(t); });
  int malformed = 0, matches = 0;
  const auto check = [&](const std::string& pattern) {
    const std::optional<ReferenceGlob> want = ReferenceGlob::Parse(pattern);
    ASSERT_EQ(CheckGlob(pattern).ok(), want.has_value()) << pattern;
    malformed += !want.has_value();
    if (!want.has_value()) return;
    for (const std::string& text : texts) {
      const bool match = want->Matches(text);
      ASSERT_EQ(GlobMatch(pattern, text), match) << pattern << " " << text;
      matches += match;
    }
  };
  ForEachText("ab*?[]-!", 5, check);
  ForEachText("a[]-^", 6, check);
  EXPECT_GT(malformed, 1000);
  EXPECT_GT(matches, 10000);
}

std::string RandomText(std::string_view alphabet, size_t max,
                       std::mt19937* rng) {
  std::string text((*rng)() % (max + 1), '\0');
  for (char& c : text) c = alphabet[(*rng)() % alphabet.size()];
  return text;
}

TEST(GlobMatch, RandomPatternsAsTheReference) {
  std::mt19937 rng(2);
  int checked = 0;
  for (int i = 0; i < 60000; ++i) {
    const std::string pattern = RandomText("aab**?[]!-\xe9", 12, &rng);
    const std::optional<ReferenceGlob> want = ReferenceGlob::Parse(pattern);
    ASSERT_EQ(CheckGlob(pattern).ok(), want.has_value()) << pattern;
    if (!want.has_value()) continue;
    ++checked;
    for (int k = 0; k < 8; ++k) {
      const std::string text = RandomText("aab-]\xe9", 12, &rng);
      ASSERT_EQ(GlobMatch(pattern, text), want->Matches(text))
          << pattern << " " << text;
    }
  }
  EXPECT_GT(checked, 10000);
}

// Would take longer than the world lasts if a star could be gone back to after
// a later one has matched.
TEST(GlobMatch, ManyStarsEnd) {
  std::string pattern, classes;
  for (int i = 0; i < 60; ++i) {
    pattern += "*a";
    classes += "*[a-c]?";
  }
  const std::string text(5000, 'a');
  EXPECT_FALSE(GlobMatch(pattern + "*b", text));
  EXPECT_TRUE(GlobMatch(pattern + "*b", text + "b"));
  EXPECT_TRUE(GlobMatch(pattern + "*", text));
  EXPECT_FALSE(GlobMatch(classes + "*[!a]", text));
  EXPECT_TRUE(GlobMatch(classes + "*[!b]", text));
}

TEST(GlobMatch, LongPatternsNeedNoStack) {
  const std::string stars(1000000, '*');
  EXPECT_TRUE(GlobMatch(stars, "x"));
  const std::string questions(1000000, '?');
  EXPECT_TRUE(GlobMatch(questions, std::string(1000000, 'x')));
  EXPECT_FALSE(GlobMatch(questions, std::string(999999, 'x')));
}

struct WildcardCase {
  std::string_view text;
  bool want;
};

constexpr WildcardCase kWildcardCases[] = {
    {"", false},      {"vfs_read", false}, {"vfs_*", true}, {"vfs_?", true},
    {"[a]", true},    {"a[", true},        {"*", true},     {"a]", false},
    {"a-b!^", false}, {"\xff", false},
};

TEST(HasWildcard, Cases) {
  for (const WildcardCase& c : kWildcardCases) {
    EXPECT_EQ(HasWildcard(c.text), c.want) << c.text;
  }
}

struct BadGlobCase {
  std::string_view pattern;
  std::string_view position, what;
};

constexpr std::string_view kNoClose = "'[' without ']'";
constexpr std::string_view kReversed = "a range that ends before it starts";

constexpr BadGlobCase kBadGlobCases[] = {
    {"", "position 1:", "empty"},
    {"[", "position 1:", kNoClose},
    {"[]", "position 1:", kNoClose},
    {"[!", "position 1:", kNoClose},
    {"[!]", "position 1:", kNoClose},
    {"[^]", "position 1:", kNoClose},
    {"[a", "position 1:", kNoClose},
    {"[a-", "position 1:", kNoClose},
    {"[a-c", "position 1:", kNoClose},
    {"vfs_[a", "position 5:", kNoClose},
    {"vfs_[", "position 5:", kNoClose},
    {"[a][b", "position 4:", kNoClose},
    {"]]][", "position 4:", kNoClose},
    {"[b-a]", "position 2:", kReversed},
    {"[!b-a]", "position 3:", kReversed},
    {"x[a-cz-y]", "position 6:", kReversed},
    {"[a][c-b]", "position 5:", kReversed},
    {"[a--]", "position 2:", kReversed},
    {"[]-A]", "position 2:", kReversed},
    {"[\xff-a]", "position 2:", kReversed},  // bytes are not signed
    {"[c-b", "position 1:", kNoClose},
};

TEST(CheckGlob, Refused) {
  for (const BadGlobCase& c : kBadGlobCases) {
    const absl::Status status = CheckGlob(c.pattern);
    const std::string message(status.message());
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.pattern;
    EXPECT_THAT(message, HasSubstr(c.position)) << c.pattern;
    EXPECT_THAT(message, HasSubstr(c.what)) << c.pattern;
    EXPECT_THAT(message, HasSubstr("'" + std::string(c.pattern) + "'"));
  }
}

TEST(CheckGlob, RefusalSaysWhatToDo) {
  EXPECT_THAT(std::string(CheckGlob("a[b").message()), HasSubstr("'[[]'"));
}

}  // namespace
}  // namespace ksweep
