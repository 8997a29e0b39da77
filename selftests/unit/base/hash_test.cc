#include "lib/base/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

bool HasDuplicate(std::vector<uint64_t> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) != values.end();
}

// The different names of a real kernel.
std::vector<std::string> KernelNames() {
  const std::string text =
      testing::Gunzip(testing::DataFolder() + "/linux-6.1.0/proc/kallsyms.gz");
  std::vector<std::string> names;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    names.push_back(text.substr(at + 19, end - at - 19));
    at = end + 1;
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

TEST(HashName, SameBytesSameHashWhereverTheyLie) {
  std::string text(100, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 37);
  for (size_t len = 0; len <= text.size(); ++len) {
    const uint64_t want = HashName(text.data(), len);
    for (size_t shift = 0; shift < 9; ++shift) {
      // Of exactly this size, so that a read outside is seen.
      const std::unique_ptr<char[]> place(new char[shift + len]);
      std::memcpy(place.get() + shift, text.data(), len);
      EXPECT_EQ(HashName(place.get() + shift, len), want);
      EXPECT_EQ(HashName(std::string_view(place.get() + shift, len)), want);
    }
  }
}

TEST(HashName, EmptyNameNeedsNoMemory) {
  EXPECT_EQ(HashName(std::string_view()), HashName("x", 0));
}

TEST(HashName, EveryBitOfEveryByteCounts) {
  std::mt19937 rng(5);
  for (size_t len = 1; len <= 130; ++len) {
    std::string name(len, '\0');
    for (char& c : name) c = static_cast<char>(rng());
    const uint64_t before = HashName(name);
    for (size_t bit = 0; bit < 8 * len; ++bit) {
      const char mask = static_cast<char>(1 << (bit % 8));
      name[bit / 8] = static_cast<char>(name[bit / 8] ^ mask);
      ASSERT_NE(HashName(name), before) << len << " bytes, bit " << bit;
      name[bit / 8] = static_cast<char>(name[bit / 8] ^ mask);
    }
  }
}

TEST(HashName, LengthCounts) {
  for (char fill : {'\0', 'a', '\xff'}) {
    std::vector<uint64_t> hashes;
    for (size_t len = 0; len <= 600; ++len) {
      hashes.push_back(HashName(std::string(len, fill)));
    }
    EXPECT_FALSE(HasDuplicate(hashes)) << static_cast<int>(fill);
  }
}

TEST(HashName, FamiliesThatDifferInOnePlace) {
  std::vector<uint64_t> hashes;
  for (int i = 0; i < 20000; ++i) {
    const std::string n = std::to_string(i);
    hashes.push_back(HashName("__bpf_trace_" + n));
    hashes.push_back(HashName(n + "_show"));
    hashes.push_back(HashName("task_fin_switch.isra." + n));
    hashes.push_back(HashName("__initcall__kmod_" + n + "__312_early"));
  }
  EXPECT_FALSE(HasDuplicate(hashes));
}

TEST(HashName, NamesOfAKernelDoNotCollide) {
  std::vector<uint64_t> hashes;
  for (const std::string& name : KernelNames()) {
    hashes.push_back(HashName(name));
  }
  ASSERT_GT(hashes.size(), 50000u);
  EXPECT_FALSE(HasDuplicate(hashes));
}

// The set of names takes its buckets from the top bits.
TEST(HashName, TopBitsOfKernelNamesAreSpread) {
  constexpr int kBits = 12;
  std::vector<int> load(1 << kBits);
  const std::vector<std::string> names = KernelNames();
  for (const std::string& name : names) ++load[HashName(name) >> (64 - kBits)];
  const double mean = static_cast<double>(names.size()) / (1 << kBits);
  double chi = 0;
  for (int cnt : load) chi += (cnt - mean) * (cnt - mean) / mean;
  // The mean of the distribution is 4095, its standard deviation 90.
  EXPECT_LT(chi, 4095 + 6 * 90);
}

TEST(HashWord, WordsDoNotCollide) {
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < 100000; ++i) {
    hashes.push_back(HashWord(i));
    hashes.push_back(HashWord(0xffffffff81000000 + 16 * i));
    hashes.push_back(HashWord((i + 1) << 44));
  }
  EXPECT_FALSE(HasDuplicate(hashes));
}

struct FoldCase {
  uint64_t a, b, want;
};

constexpr FoldCase kFoldCases[] = {
    {0, 0, 0},
    {1, 7, 7},
    {uint64_t{1} << 63, 2, 1},
    {UINT64_MAX, UINT64_MAX, UINT64_MAX},
    {0x123456789abcdef0, 0x10, 0x23456789abcdef00 ^ 1},
};

TEST(FoldMultiply, Cases) {
  for (const FoldCase& c : kFoldCases) {
    EXPECT_EQ(FoldMultiply(c.a, c.b), c.want) << c.a << " " << c.b;
    EXPECT_EQ(FoldMultiply(c.b, c.a), c.want) << c.a << " " << c.b;
  }
}

TEST(LoadShort, ReadsNothingElseAndEveryByte) {
  for (size_t len = 0; len < 8; ++len) {
    const std::unique_ptr<char[]> bytes(new char[len]);
    std::memset(bytes.get(), 'a', len);
    uint64_t a, b;
    LoadShort(bytes.get(), len, &a, &b);
    for (size_t i = 0; i < len; ++i) {
      bytes[i] = 'b';
      uint64_t a2, b2;
      LoadShort(bytes.get(), len, &a2, &b2);
      EXPECT_TRUE(a != a2 || b != b2) << len << " bytes, byte " << i;
      bytes[i] = 'a';
    }
  }
}

}  // namespace
}  // namespace ksweep
