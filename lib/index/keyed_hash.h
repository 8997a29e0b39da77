// The hash that locators are made with. The same on every machine, and part of
// the file format.

#ifndef KSWEEP_LIB_INDEX_KEYED_HASH_H_
#define KSWEEP_LIB_INDEX_KEYED_HASH_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/hash.h"
#include "lib/index/le.h"
#include "lib/index/name_words.h"

namespace ksweep {

// What a seed makes of the hash: with another one, other names collide.
struct HashKeys {
  HashKeys() : HashKeys(0) {}
  explicit HashKeys(uint64_t seed) {
    for (uint64_t& key : keys) {
      seed += 0x9e3779b97f4a7c15ULL;
      key = HashWord(HashWord(seed) ^ seed);
    }
  }

  uint64_t keys[6];
};

// For names that NameWords do not cover.
uint64_t KeyedHashOfOthers(std::string_view name, const HashKeys& keys);

inline uint64_t KeyedHash(std::string_view name, const HashKeys& keys) {
  const size_t size = name.size();
  if (!NameWords::Cover(size)) [[unlikely]]
    return KeyedHashOfOthers(name, keys);
  const NameWords at(size);
  const char* const p = name.data();
  const uint64_t* const key = keys.keys;
  uint64_t hash = FoldMultiply(LoadLe<uint64_t>(p) ^ key[0],
                               LoadLe<uint64_t>(p + at.last) ^ key[1]);
  hash += FoldMultiply(LoadLe<uint64_t>(p + at.second) ^ key[2],
                       LoadLe<uint64_t>(p + at.fifth) ^ key[3]);
  hash ^= FoldMultiply(LoadLe<uint64_t>(p + at.third) ^ key[4],
                       LoadLe<uint64_t>(p + at.fourth) ^ key[5]);
  // Not as part of a word: other bytes could make up for it, whatever the keys.
  return hash + size * kHash1;
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_KEYED_HASH_H_
