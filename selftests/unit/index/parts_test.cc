// The parts of an index, each alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/index/btf_ids.h"
#include "lib/index/dictionary.h"
#include "lib/index/dictionary_trainer.h"
#include "lib/index/keyed_hash.h"
#include "lib/index/le.h"
#include "lib/index/locator.h"
#include "lib/index/packed_array.h"
#include "lib/index/piece_compare.h"
#include "lib/index/query.h"
#include "lib/index/side_tables.h"
#include "lib/index/suffix_finder.h"
#include "lib/index/tokenizer.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;

template <typename Comparison>
bool SamePieces(const Dictionary::Slot& slot, const char* name) {
  Comparison comparison;
  comparison.Add(slot, name);
  return comparison.AllSame();
}

TEST(PieceCompare, BothFormsAgreeWithThePlainOne) {
  std::mt19937 rng(1);
  for (int round = 0; round < 20000; ++round) {
    Dictionary::Slot slot = {};
    slot.size = static_cast<uint8_t>(rng() % 16);
    char name[16];
    for (char& c : name) c = static_cast<char>('a' + rng() % 2);
    for (size_t i = 0; i < slot.size; ++i) {
      slot.bytes[i] = rng() % 16 == 0 ? 'x' : name[i];
    }
    const bool same = std::equal(slot.bytes, slot.bytes + slot.size, name);
    EXPECT_EQ(SamePieces<PortableComparison>(slot, name), same);
#if defined(__SSE2__)
    EXPECT_EQ(SamePieces<Sse2Comparison>(slot, name), same);
#endif
  }
}

template <typename Comparison>
void ExpectOneDifferenceCounts() {
  Dictionary::Slot slot = {};
  slot.size = 15;
  const char name[16] = {};
  for (size_t wrong = 0; wrong < 3; ++wrong) {
    Comparison comparison;
    for (size_t i = 0; i < 3; ++i) {
      slot.bytes[14] = i == wrong ? 'x' : '\0';
      comparison.Add(slot, name);
    }
    EXPECT_FALSE(comparison.AllSame()) << wrong;
  }
}

TEST(PieceCompare, OneDifferenceOfManyPiecesCounts) {
  ExpectOneDifferenceCounts<PortableComparison>();
#if defined(__SSE2__)
  ExpectOneDifferenceCounts<Sse2Comparison>();
#endif
}

TEST(Query, IsACopyWithZerosBehind) {
  std::string name;
  Query query;
  for (size_t size = 0; size < 600; ++size) {
    // Nothing around the name may be read.
    const std::vector<char> exact(name.begin(), name.end());
    query.Set({exact.data(), exact.size()});
    ASSERT_EQ(std::string_view(query.data(), query.size()), name);
    for (size_t i = 0; i < Query::kZerosBehind; ++i) {
      ASSERT_EQ(query.data()[size + i], '\0') << size;
    }
    name += static_cast<char>('a' + size % 26);
  }
}

TEST(KeyedHash, EveryByteAndTheLengthCount) {
  const HashKeys keys(1);
  std::set<uint64_t> hashes;
  size_t names = 0;
  for (size_t size = 0; size <= 100; ++size) {
    std::string name(size, 'a');
    hashes.insert(KeyedHash(name, keys));
    ++names;
    for (char& c : name) {
      c = 'b';
      hashes.insert(KeyedHash(name, keys));
      c = 'a';
      ++names;
    }
  }
  EXPECT_EQ(hashes.size(), names);
}

// It is part of the file format: what changes it needs another version.
TEST(KeyedHash, StaysTheSame) {
  const HashKeys keys(1);
  EXPECT_EQ(KeyedHash("", keys), 8489218702543944349u);
  EXPECT_EQ(KeyedHash("_text", keys), 10591057898364770537u);
  EXPECT_EQ(KeyedHash("vfs_read", keys), 6965314871777568089u);
  EXPECT_EQ(KeyedHash("security_file_permission", keys), 18336461960338994763u);
  EXPECT_EQ(KeyedHash(std::string(48, 'a'), keys), 12218374450410512522u);
  EXPECT_EQ(KeyedHash(std::string(49, 'a'), keys), 2116341889193458572u);
}

TEST(KeyedHash, OtherSeedsGiveOtherHashes) {
  const HashKeys one(1);
  const HashKeys two(2);
  for (size_t size : {0, 5, 8, 20, 48, 49, 100}) {
    const std::string name(size, 'a');
    EXPECT_NE(KeyedHash(name, one), KeyedHash(name, two)) << size;
  }
}

TEST(Le, NumbersComeBack) {
  std::string bytes;
  AppendLe(uint16_t{0x1234}, &bytes);
  EXPECT_EQ(bytes, "\x34\x12");
  const uint64_t numbers[] = {0, 1, 127, 128, 300, 1u << 31, UINT64_MAX};
  for (uint64_t number : numbers) AppendLeb(number, &bytes);
  LeReader reader(bytes);
  EXPECT_EQ(reader.Take<uint16_t>(), 0x1234);
  for (uint64_t number : numbers) EXPECT_EQ(reader.TakeLeb(), number);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.TakeLeb(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_FALSE(LeReader("\xff\xff").TakeLeb() != 0);
}

TEST(PackedArray, EveryWidth) {
  for (unsigned bits = 1; bits <= 32; ++bits) {
    std::vector<uint32_t> values;
    for (uint32_t i = 0; i < 99; ++i) {
      values.push_back((i * 2654435761u) & ((uint64_t{1} << bits) - 1));
    }
    const std::string bytes = PackArray(values, bits);
    EXPECT_EQ(bytes.size(), PackedBytes(values.size(), bits));
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(LoadPacked(bytes.data(), i, bits), values[i]) << bits;
    }
  }
}

TEST(Dictionary, ComesBack) {
  const std::vector<std::string> pieces = {"a", "bc", std::string(15, 'z')};
  const Dictionary dictionary(pieces);
  const auto unpacked = Dictionary::Unpack(dictionary.Pack());
  ASSERT_TRUE(unpacked.ok()) << unpacked.status();
  EXPECT_TRUE(**unpacked == dictionary);
  EXPECT_EQ((*unpacked)->Piece(kFirstPiece + 1), "bc");
  EXPECT_EQ((*unpacked)->Piece(kFirstPiece + 3), "");
  EXPECT_EQ((*unpacked)->Piece(kEscapeCode), "");
}

TEST(Dictionary, BugCase77_LengthsThatDoNotFitAreRefused) {
  const std::string good = Dictionary(std::vector<std::string>{"a"}).Pack();
  EXPECT_TRUE(absl::IsDataLoss(Dictionary::Unpack("").status()));
  EXPECT_TRUE(absl::IsDataLoss(
      Dictionary::Unpack(good.substr(0, good.size() - 1)).status()));
  EXPECT_TRUE(absl::IsDataLoss(Dictionary::Unpack(good + "b").status()));
  std::string longer = good;
  longer.back() = 'b';
  longer[kFirstPiece / 2] = 2;
  EXPECT_TRUE(absl::IsDataLoss(Dictionary::Unpack(longer).status()));
  // A piece for the filler or the escape.
  std::string filler = good;
  filler[0] = 1;
  filler[kFirstPiece / 2] = 0;
  EXPECT_TRUE(absl::IsDataLoss(Dictionary::Unpack(filler).status()));
}

TEST(Dictionary, TheBuiltInOneIsFull) {
  const std::shared_ptr<const Dictionary> built_in = Dictionary::BuiltIn();
  std::set<std::string_view> pieces;
  for (uint16_t code = kFirstPiece; code < kCodeCnt; ++code) {
    pieces.insert(built_in->Piece(code));
  }
  EXPECT_EQ(pieces.size(), kMaxPieces);
  for (char c = 'a'; c <= 'z'; ++c) EXPECT_TRUE(pieces.contains({&c, 1}));
}

std::string Decode(const Dictionary& dictionary,
                   const std::vector<uint16_t>& codes) {
  std::string name;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == kEscapeCode) {
      name += static_cast<char>(codes[++i]);
    } else {
      name += dictionary.Piece(codes[i]);
    }
  }
  return name;
}

// By trying every way.
size_t FewestCodes(const std::vector<std::string>& pieces,
                   std::string_view name) {
  std::vector<size_t> fewest(name.size() + 1, 0);
  for (size_t at = name.size(); at-- > 0;) {
    fewest[at] = fewest[at + 1] + 2;
    for (const std::string& piece : pieces) {
      if (name.substr(at, piece.size()) != piece) continue;
      fewest[at] = std::min(fewest[at], fewest[at + piece.size()] + 1);
    }
  }
  return fewest[0];
}

TEST(Tokenizer, FindsTheFewestCodes) {
  std::mt19937 rng(1);
  const auto random_text = [&rng](size_t max, unsigned letters) {
    std::string text(1 + rng() % max, ' ');
    for (char& c : text) c = static_cast<char>("abcd\xfe"[rng() % letters]);
    return text;
  };
  for (int round = 0; round < 100; ++round) {
    std::set<std::string> set;
    for (int i = 0; i < 30; ++i) set.insert(random_text(15, 4));
    const std::vector<std::string> pieces(set.begin(), set.end());
    const Dictionary dictionary(pieces);
    Tokenizer tokenizer(dictionary);
    for (int i = 0; i < 30; ++i) {
      const std::string name = random_text(60, 5);
      std::vector<uint16_t> codes;
      tokenizer.Encode(name, &codes);
      ASSERT_EQ(Decode(dictionary, codes), name);
      ASSERT_EQ(codes.size(), FewestCodes(pieces, name));
    }
  }
}

TEST(Trainer, FindsWhatRepeats) {
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) {
    texts.push_back("common_prefix_" + std::to_string(i * 37) + "_tail");
  }
  std::vector<TrainingName> names;
  for (const std::string& text : texts) names.push_back({text, 1});
  const std::vector<std::string> pieces = TrainDictionary(names);
  EXPECT_TRUE(std::is_sorted(pieces.begin(), pieces.end()));
  EXPECT_EQ(pieces, TrainDictionary(names)) << "not the same twice";
  const Dictionary dictionary(pieces);
  Tokenizer tokenizer(dictionary);
  size_t cnt = 0;
  for (const std::string& text : texts) {
    std::vector<uint16_t> codes;
    tokenizer.Encode(text, &codes);
    EXPECT_EQ(Decode(dictionary, codes), text);
    cnt += codes.size();
  }
  EXPECT_LE(cnt, 4 * texts.size());
}

TEST(SuffixFinder, LongestFirst) {
  SuffixFinder finder(4);
  finder.Add("c", 1);
  finder.Add("b_c", 2);
  finder.Add("_c", 3);
  finder.Add("b_c", 4);
  std::vector<std::pair<size_t, uint32_t>> found;
  const auto collect = [&found](size_t start, uint32_t number) {
    found.emplace_back(start, number);
    return false;
  };
  finder.Find("a_b_c", collect);
  EXPECT_THAT(found, ElementsAre(std::make_pair(2, 2), std::make_pair(4, 1)));
  found.clear();
  finder.Find("b_c", collect);
  EXPECT_THAT(found, ElementsAre(std::make_pair(0, 2), std::make_pair(2, 1)));
  found.clear();
  // Not behind a `_`.
  finder.Find("abc", collect);
  EXPECT_TRUE(found.empty());
}

TEST(Locator, EveryNameHasItsValue) {
  for (size_t cnt : {0, 1, 2, 3, 10, 100, 5000}) {
    std::vector<std::string> texts;
    std::vector<uint32_t> values;
    for (uint32_t i = 0; i < cnt; ++i) {
      texts.push_back("name_" + std::to_string(i));
      values.push_back(i * 3);
    }
    const std::vector<std::string_view> names(texts.begin(), texts.end());
    const auto none = static_cast<uint32_t>(3 * cnt);
    const auto bytes = BuildLocator(names, values, none);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto locator =
        Locator::Make(bytes->shape, bytes->pilots, bytes->slots);
    ASSERT_TRUE(locator.ok()) << locator.status();
    for (size_t i = 0; i < cnt; ++i) {
      EXPECT_EQ(locator->Lookup(KeyedHash(names[i], locator->keys())),
                values[i]);
    }
    // Values of others are values of names; for most there is none.
    size_t found = 0;
    for (int i = 0; i < 1000; ++i) {
      const std::string absent = "absent_" + std::to_string(i);
      const uint64_t value =
          locator->Lookup(KeyedHash(absent, locator->keys()));
      if (value >= none) continue;
      EXPECT_EQ(value % 3, 0u);
      ++found;
    }
    EXPECT_LT(found, 200u) << cnt;
  }
}

TEST(Locator, BugCase78_SizesThatDoNotFitAreRefused) {
  const std::vector<std::string_view> names = {"a", "b", "c"};
  const auto good = *BuildLocator(names, {0, 1, 2}, 3);
  const auto refused = [&good](void (*change)(LocatorBytes*)) {
    LocatorBytes bad = good;
    change(&bad);
    return absl::IsDataLoss(
        Locator::Make(bad.shape, bad.pilots, bad.slots).status());
  };
  EXPECT_FALSE(refused([](LocatorBytes*) {}));
  EXPECT_TRUE(refused([](LocatorBytes* b) { ++b->shape.buckets; }));
  EXPECT_TRUE(refused([](LocatorBytes* b) { b->shape.slots = 1u << 31; }));
  EXPECT_TRUE(refused([](LocatorBytes* b) { b->shape.slot_bits = 0; }));
  EXPECT_TRUE(refused([](LocatorBytes* b) { b->shape.slot_bits = 64; }));
  EXPECT_TRUE(refused([](LocatorBytes* b) { b->pilots += "x"; }));
  EXPECT_TRUE(refused([](LocatorBytes* b) { b->slots.pop_back(); }));
}

TEST(Duplicates, EveryListComesBack) {
  std::mt19937 rng(1);
  Duplicates::Lists lists;
  for (int i = 0; i < 200; ++i) {
    std::vector<uint32_t>& others = lists[rng() % 1000000];
    others.clear();
    for (uint32_t cnt = 1 + rng() % 5; cnt > 0; --cnt) {
      others.push_back(rng() % 1000000);
    }
    std::sort(others.begin(), others.end());
  }
  const std::string packed = Duplicates::Pack(lists);
  const auto duplicates = Duplicates::Make(packed);
  ASSERT_TRUE(duplicates.ok()) << duplicates.status();
  for (const auto& [offset, others] : lists) {
    std::vector<uint32_t> found;
    EXPECT_TRUE(duplicates->Find(offset, 1000000, &found));
    EXPECT_EQ(found, others);
    found.clear();
    if (!lists.contains(offset + 1)) {
      EXPECT_TRUE(duplicates->Find(offset + 1, 1000000, &found));
      EXPECT_TRUE(found.empty());
    }
    // A record that is not in the table.
    EXPECT_FALSE(duplicates->Find(offset, others.back(), &found));
  }
}

TEST(BtfIds, EveryIdComesBack) {
  std::vector<BtfIds::Item> items;
  std::map<uint32_t, uint32_t> offsets;
  for (uint32_t id = 1; id < 5000; id += 1 + id % 70) {
    items.push_back({id, id * 13});
    offsets[id] = id * 13;
  }
  const std::string packed = BtfIds::Pack(items);
  const auto ids = BtfIds::Make(packed);
  ASSERT_TRUE(ids.ok()) << ids.status();
  for (uint32_t id = 0; id < 6000; ++id) {
    const std::optional<uint32_t> found = ids->Find(id);
    ASSERT_EQ(found.has_value(), offsets.contains(id)) << id;
    if (found.has_value()) {
      EXPECT_EQ(*found, offsets[id]);
    }
  }
  EXPECT_FALSE(ids->Find(UINT32_MAX).has_value());
  for (size_t size = 0; size < packed.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(
        BtfIds::Make(std::string_view(packed).substr(0, size)).status()));
  }
}

}  // namespace
}  // namespace ksweep
