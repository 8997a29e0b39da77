#include "lib/base/name_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ksweep {
namespace {

using Names = std::vector<std::string>;

std::vector<std::string_view> Views(const Names& names) {
  return {names.begin(), names.end()};
}

// The place where each name is first given.
std::map<std::string, uint32_t> ReferenceIds(const Names& names) {
  std::map<std::string, uint32_t> ids;
  for (uint32_t i = 0; i < names.size(); ++i) ids.emplace(names[i], i);
  return ids;
}

struct Found {
  uint32_t tag;
  uint32_t id;
  bool operator==(const Found& other) const {
    return tag == other.tag && id == other.id;
  }
};

std::vector<Found> FindAll(const NameSet& set, const Names& names,
                           uint32_t first_tag = 0) {
  std::vector<NameSet::Probe> probes;
  for (const std::string& name : names) {
    probes.push_back({name.data(), static_cast<uint32_t>(name.size()),
                      first_tag + static_cast<uint32_t>(probes.size())});
  }
  std::vector<Found> found;
  set.FindBatch(probes, [&](uint32_t tag, const NameSet::Hit& hit) {
    const std::string& name = names[tag - first_tag];
    EXPECT_EQ(std::string_view(hit.name, name.size()), name);
    EXPECT_NE(hit.name, name.data());
    found.push_back({tag, hit.id});
  });
  return found;
}

// Looks for each of `queries` in a set of `names`, one by one and in a batch.
void ExpectAsReference(const Names& names, const Names& queries) {
  const NameSet set(Views(names));
  const std::map<std::string, uint32_t> want = ReferenceIds(names);
  ASSERT_EQ(set.size(), want.size());
  ASSERT_EQ(set.repeats().size(), names.size() - want.size());
  for (const NameSet::Repeat& repeat : set.repeats()) {
    ASSERT_EQ(repeat.id, want.at(names[repeat.place]));
    ASSERT_NE(repeat.id, repeat.place);
  }
  std::map<std::string, int> times;
  for (const std::string& name : names) ++times[name];
  std::vector<Found> want_found;
  for (uint32_t i = 0; i < queries.size(); ++i) {
    const auto it = want.find(queries[i]);
    const NameSet::Hit hit = set.Find(queries[i]);
    if (it == want.end()) {
      ASSERT_EQ(hit.id, NameSet::kNone) << queries[i];
      continue;
    }
    ASSERT_EQ(hit.id, it->second) << queries[i];
    ASSERT_EQ(std::string_view(hit.name, queries[i].size()), queries[i]);
    ASSERT_TRUE(set.filter().MayContain(queries[i]));
    ASSERT_EQ(hit.repeated, times.at(queries[i]) > 1);
    want_found.push_back({i, it->second});
  }
  ASSERT_TRUE(FindAll(set, queries) == want_found);
}

TEST(NameSet, EmptySet) {
  for (const NameSet& set :
       {NameSet(), NameSet(absl::Span<const std::string_view>())}) {
    EXPECT_EQ(set.size(), 0u);
    EXPECT_EQ(set.Find("").id, NameSet::kNone);
    EXPECT_EQ(set.Find("vfs_read").id, NameSet::kNone);
    EXPECT_EQ(set.Find("vfs_read").name, nullptr);
    EXPECT_FALSE(set.filter().MayContain(uint64_t{0}));
    EXPECT_FALSE(set.filter().MayContain(UINT64_MAX));
    EXPECT_TRUE(FindAll(set, {"", "vfs_read"}).empty());
  }
}

TEST(NameSet, IdsAreThePlacesOfFirstMention) {
  const NameSet set(Views({"z", "a", "z", "m", "a", "", "b", ""}));
  EXPECT_EQ(set.size(), 5u);
  EXPECT_EQ(set.Find("z").id, 0u);
  EXPECT_EQ(set.Find("a").id, 1u);
  EXPECT_EQ(set.Find("m").id, 3u);
  EXPECT_EQ(set.Find("").id, 5u);
  EXPECT_EQ(set.Find("b").id, 6u);
  EXPECT_TRUE(set.Find("z").repeated);
  EXPECT_FALSE(set.Find("b").repeated);
  EXPECT_EQ(set.repeats().size(), 3u);
}

TEST(NameSet, HoldsItsOwnCopy) {
  Names names = {"vfs_read", "vfs_write"};
  const NameSet set(Views(names));
  names[0] = "clobbered";
  names[1].clear();
  const NameSet::Hit hit = set.Find("vfs_read");
  EXPECT_EQ(hit.id, 0u);
  EXPECT_EQ(std::string_view(hit.name, 8), "vfs_read");
  EXPECT_EQ(set.Find("clobbered").id, NameSet::kNone);
}

TEST(NameSet, NamesStayWhenItMoves) {
  NameSet first(Views({"vfs_read", "vfs_write"}));
  const char* const name = first.Find("vfs_write").name;
  const NameSet second(std::move(first));
  EXPECT_EQ(second.Find("vfs_write").id, 1u);
  EXPECT_EQ(second.Find("vfs_write").name, name);
}

TEST(NameSet, EqualNamesHaveOneCopy) {
  const NameSet set(Views({"a", "b", "a", "a"}));
  const char* const name = set.Find("a").name;
  for (const Found& found : FindAll(set, {"a", "a"})) EXPECT_EQ(found.id, 0u);
  EXPECT_EQ(set.Find("a").name, name);
}

TEST(NameSet, EmptyName) {
  const Names names = {"a", "", "b"};
  ExpectAsReference(names, {"", "a", "b", "c"});
  // A view of nothing is the same name.
  const NameSet set(Views(names));
  EXPECT_EQ(set.Find(std::string_view()).id, 1u);
  const NameSet::Probe probe = {nullptr, 0, 7};
  int calls = 0;
  set.FindBatch({&probe, 1}, [&calls](uint32_t tag, const NameSet::Hit& hit) {
    EXPECT_EQ(tag, 7u);
    EXPECT_EQ(hit.id, 1u);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
}

TEST(NameSet, ProbesNeedNotEndInNul) {
  const NameSet set(Views({"vfs_read"}));
  const std::unique_ptr<char[]> exact(new char[8]);
  std::memcpy(exact.get(), "vfs_read", 8);
  EXPECT_EQ(set.Find({exact.get(), 8}).id, 0u);
  EXPECT_EQ(set.Find({exact.get(), 7}).id, NameSet::kNone);
}

// Batches are worked off in groups of 32.
TEST(NameSet, BatchesOfEverySize) {
  Names names;
  for (int i = 0; i < 200; ++i) names.push_back("f" + std::to_string(i));
  const NameSet set(Views(names));
  for (uint32_t cnt = 0; cnt <= 130; ++cnt) {
    Names queries;
    std::vector<Found> want;
    for (uint32_t i = 0; i < cnt; ++i) {
      const uint32_t id = (i * 7) % 200;
      queries.push_back(i % 3 == 0 ? "g" + std::to_string(i) : names[id]);
      if (i % 3 != 0) want.push_back({1000 + i, id});
    }
    EXPECT_TRUE(FindAll(set, queries, 1000) == want) << cnt;
  }
}

TEST(NameSet, OneNameManyTimes) {
  Names names(10000, "same");
  names.insert(names.begin() + 5000, "other");
  ExpectAsReference(names, {"same", "other", "sam", "samee", ""});
}

TEST(NameSet, BugCase10_EveryLength) {
  Names names, queries;
  for (size_t len = 0; len <= 5000; len += len < 600 ? 1 : 97) {
    names.push_back(std::string(len, 'x'));
    queries.push_back(names.back());
    if (len == 0) continue;
    // Not in the set, and different in the last or first byte only.
    queries.push_back(std::string(len - 1, 'x') + 'y');
    queries.push_back('y' + std::string(len - 1, 'x'));
  }
  ExpectAsReference(names, queries);
}

TEST(NameSet, BugCase10_NamesThatDifferInOneByte) {
  for (size_t len : {1, 7, 8, 15, 16, 17, 127, 128, 129, 256, 512, 5000}) {
    Names names;
    const std::string base(len, 'x');
    for (size_t at = 0; at < len; at += 1 + len / 100) {
      names.push_back(base);
      names.back()[at] = 'y';
    }
    Names queries = names;
    queries.push_back(base);
    ExpectAsReference(names, queries);
  }
}

TEST(NameSet, BugCase09_EveryByte) {
  Names names, queries;
  for (int byte = 0; byte < 256; ++byte) {
    queries.push_back({'d', static_cast<char>(byte), 'x'});
    if (byte % 2 == 0) names.push_back(queries.back());
  }
  names.push_back("drv_\xc3\xa9_on");
  names.push_back("x\xff\xfey");
  queries.push_back("drv_\xc3\xa9_on");
  queries.push_back("x\xff\xfey");
  queries.push_back("x\xff\xffy");
  ExpectAsReference(names, queries);
}

std::string RandomName(std::mt19937* rng) {
  constexpr std::string_view kAlphabet("ab._\x80\xff\0", 7);
  size_t len = (*rng)() % 12;
  if ((*rng)() % 20 == 0) len = (*rng)() % 5001;
  std::string name(len, '\0');
  for (char& c : name) c = kAlphabet[(*rng)() % kAlphabet.size()];
  return name;
}

TEST(NameSet, RandomNamesAsAMap) {
  std::mt19937 rng(6);
  for (int round = 0; round < 200; ++round) {
    Names names(rng() % 300);
    for (std::string& name : names) name = RandomName(&rng);
    Names queries = names;
    for (int i = 0; i < 100; ++i) {
      queries.push_back(RandomName(&rng));
      if (queries[i].empty()) continue;
      queries.push_back(queries[i]);
      queries.back()[rng() % queries[i].size()] ^= 1;
    }
    std::shuffle(queries.begin(), queries.end(), rng);
    ExpectAsReference(names, queries);
  }
}

// More names than the bitmap has bits for.
TEST(NameSet, ManyNames) {
  Names names, queries;
  for (int i = 0; i < 150000; ++i) {
    names.push_back("function_" + std::to_string(i * 3));
    queries.push_back("function_" + std::to_string(i * 2));
  }
  ExpectAsReference(names, queries);
}

TEST(NameSet, BitmapTurnsMostOthersAway) {
  for (int cnt : {1, 10, 1000, 30000}) {
    Names names;
    for (int i = 0; i < cnt; ++i) names.push_back("in" + std::to_string(i));
    const NameSet set(Views(names));
    int candidates = 0;
    for (int i = 0; i < 100000; ++i) {
      candidates += set.filter().MayContain("out" + std::to_string(i));
    }
    EXPECT_LT(candidates, 10000) << cnt;
  }
}

TEST(NameSet, SomeBytesBesideTheNames) {
  constexpr size_t kCnt = 100000;
  Names names;
  for (size_t i = 0; i < kCnt; ++i) {
    names.push_back("some_function_" + std::to_string(100000 + i));
  }
  const NameSet set(Views(names));
  const size_t per_name = set.bytes() / kCnt;
  EXPECT_GE(per_name, names[0].size());
  EXPECT_LE(per_name, names[0].size() + 32);
}

// Names whose hashes share the high half, which is all that an entry keeps.
std::vector<std::pair<std::string, std::string>> HighHalfTwins() {
  std::vector<std::pair<uint32_t, int>> lows;
  const auto name = [](int i) { return "name" + std::to_string(i); };
  for (int i = 0; i < 400000; ++i) {
    lows.emplace_back(static_cast<uint32_t>(HashName(name(i)) >> 32), i);
  }
  std::sort(lows.begin(), lows.end());
  std::vector<std::pair<std::string, std::string>> twins;
  for (size_t i = 1; i < lows.size(); ++i) {
    if (lows[i].first != lows[i - 1].first) continue;
    twins.emplace_back(name(lows[i - 1].second), name(lows[i].second));
  }
  return twins;
}

TEST(NameSet, EqualHalvesOfTheHash) {
  const auto twins = HighHalfTwins();
  ASSERT_GE(twins.size(), 4u);
  Names all;
  for (const auto& [a, b] : twins) {
    ExpectAsReference({a, b}, {a, b, "x"});
    ExpectAsReference({b, a, b}, {a, b, "x"});
    ExpectAsReference({a}, {b, a});
    ExpectAsReference({b, b}, {a, b});
    all.push_back(a);
    all.push_back(b);
  }
  ExpectAsReference(all, all);
}

// If the last 8 bytes of a name of 16 are the second constant and that, a
// factor of the product is 0 and so is the hash, whatever comes before.
TEST(NameSet, EqualHashes) {
  const uint64_t constant = 0xe7037ed1a0b428db ^ 16;
  std::string tail(8, '\0');
  std::memcpy(tail.data(), &constant, 8);
  Names names, queries;
  for (int i = 0; i < 300; ++i) {
    const std::string name = std::to_string(10000000 + i) + tail;
    ASSERT_EQ(HashName(name), 0u) << "no longer the hash's constant";
    names.push_back(name);
    if (i % 3 == 0) names.push_back(names[static_cast<size_t>(i) / 2]);
    queries.push_back(name);
    queries.push_back(std::to_string(20000000 + i) + tail);
  }
  ExpectAsReference(names, queries);
}

TEST(NameSet, ManyThreadsMaySearch) {
  Names names;
  for (int i = 0; i < 1000; ++i) names.push_back("f" + std::to_string(i));
  const NameSet set(Views(names));
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&set, &names] {
      EXPECT_EQ(FindAll(set, names).size(), names.size());
      for (uint32_t i = 0; i < names.size(); ++i) {
        EXPECT_EQ(set.Find(names[i]).id, i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ksweep
