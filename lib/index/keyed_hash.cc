#include "lib/index/keyed_hash.h"

namespace ksweep {
namespace {

// Fewer than eight bytes, the lowest first.
uint64_t ShortWord(std::string_view name) {
  uint64_t word = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    word |= static_cast<uint64_t>(static_cast<unsigned char>(name[i]))
            << (8 * i);
  }
  return word;
}

}  // namespace

uint64_t KeyedHashOfOthers(std::string_view name, const HashKeys& keys) {
  const size_t size = name.size();
  const uint64_t* const key = keys.keys;
  if (size < NameWords::kMinSize) {
    return FoldMultiply(ShortWord(name) ^ key[0], key[1]) + size * kHash1;
  }
  uint64_t hash = key[0];
  const char* const last = name.data() + size - 16;
  for (const char* p = name.data(); p < last; p += 16) {
    hash = FoldMultiply(LoadLe<uint64_t>(p) ^ hash,
                        LoadLe<uint64_t>(p + 8) ^ key[1]);
  }
  return FoldMultiply(LoadLe<uint64_t>(last) ^ hash,
                      LoadLe<uint64_t>(last + 8) ^ key[2]) +
         size * kHash1;
}

}  // namespace ksweep
