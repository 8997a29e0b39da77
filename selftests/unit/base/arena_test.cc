#include "lib/base/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ksweep {
namespace {

static_assert(!std::is_copy_constructible_v<Arena>);

struct Piece {
  char* place = nullptr;
  size_t bytes = 0;
  char fill = 0;
};

Piece Fill(Arena* arena, size_t bytes, size_t align, char fill) {
  char* place = static_cast<char*>(arena->Allocate(bytes, align));
  std::memset(place, fill, bytes);
  return {place, bytes, fill};
}

bool IsIntact(const Piece& piece) {
  return std::string_view(piece.place, piece.bytes) ==
         std::string(piece.bytes, piece.fill);
}

TEST(Arena, PiecesAreAlignedAndDoNotOverlap) {
  constexpr size_t kAligns[] = {1, 2, 4, 8, 16};
  std::mt19937 rng(1);
  Arena arena;
  std::vector<Piece> pieces;
  for (int i = 0; i < 3000; ++i) {
    const size_t align = kAligns[rng() % std::size(kAligns)];
    const size_t bytes =
        i % 100 == 0 ? Arena::kBlockBytes - 50 + rng() % 100 : 1 + rng() % 300;
    pieces.push_back(Fill(&arena, bytes, align, static_cast<char>(i)));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pieces.back().place) % align, 0u)
        << bytes << " bytes, aligned to " << align;
  }
  for (const Piece& piece : pieces) EXPECT_TRUE(IsIntact(piece));
}

struct BytesCase {
  std::vector<size_t> allocations;
  size_t want;  // bytes() then
};

TEST(Arena, BytesAreThoseOfTheBlocks) {
  constexpr size_t kBlock = Arena::kBlockBytes;
  const BytesCase kCases[] = {
      {{}, 0},
      {{1}, kBlock},
      {{1, 1, 1}, kBlock},
      {{kBlock}, kBlock},
      {{kBlock, 1}, 2 * kBlock},
      {{kBlock - 1, 1}, kBlock},
      {{kBlock - 1, 2}, 2 * kBlock},
      {{kBlock + 1}, kBlock + 1},
      {{1, 10 * kBlock, 1}, kBlock + 10 * kBlock + kBlock},
  };
  for (const BytesCase& c : kCases) {
    Arena arena;
    for (size_t bytes : c.allocations) arena.Allocate(bytes, 1);
    EXPECT_EQ(arena.bytes(), c.want) << ::testing::PrintToString(c.allocations);
  }
}

TEST(Arena, CopyKeepsEveryByte) {
  Arena arena;
  std::vector<std::pair<std::string, std::string_view>> copies;
  for (size_t len : {0, 1, 2, 15, 500, 70000}) {
    std::string text;
    for (size_t i = 0; i < len; ++i) text += static_cast<char>(i * 7);
    copies.emplace_back(text, arena.Copy(text));
    EXPECT_TRUE(len == 0 || copies.back().second.data() != text.data());
  }
  for (const auto& [text, copy] : copies) EXPECT_EQ(copy, text);
}

TEST(Arena, EmptyCopiesNeedNoMemory) {
  Arena arena;
  EXPECT_TRUE(arena.Copy(std::string_view()).empty());
  EXPECT_TRUE(arena.Copy(absl::Span<const uint64_t>()).empty());
  EXPECT_EQ(arena.bytes(), 0u);
}

TEST(Arena, CopiesSpans) {
  struct Item {
    char tag;
    uint64_t value;
    bool operator==(const Item& other) const {
      return tag == other.tag && value == other.value;
    }
  };
  Arena arena;
  arena.Copy("x");  // so that the next place is odd
  std::vector<Item> items;
  for (uint64_t i = 0; i < 10000; ++i) {
    items.push_back({static_cast<char>(i), i << 40});
  }
  const absl::Span<const Item> copy = arena.Copy(absl::Span<const Item>(items));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(copy.data()) % alignof(Item), 0u);
  EXPECT_NE(copy.data(), items.data());
  EXPECT_EQ(copy, absl::Span<const Item>(items));
}

TEST(Arena, PiecesStayWhenItMoves) {
  Arena first;
  const std::string_view one = first.Copy("one");
  Arena second(std::move(first));
  const std::string_view two = second.Copy("two");
  Arena third;
  third.Copy("given back");
  third = std::move(second);
  const std::string_view three = third.Copy("three");
  EXPECT_EQ(one, "one");
  EXPECT_EQ(two, "two");
  EXPECT_EQ(three, "three");
  EXPECT_EQ(one.data() + one.size(), two.data());
  EXPECT_EQ(two.data() + two.size(), three.data());
}

}  // namespace
}  // namespace ksweep
