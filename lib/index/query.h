// A name to look for: a copy that can be read past its end, and its hash.

#ifndef KSWEEP_LIB_INDEX_QUERY_H_
#define KSWEEP_LIB_INDEX_QUERY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "lib/base/hash.h"
#include "lib/index/le.h"

namespace ksweep {

// The hash that locators are made with. Of whole blocks of 16 bytes, the last
// one filled up with zeros. The same on every machine, and part of the file
// format.
inline uint64_t HashBlocks(const char* bytes, size_t size, uint64_t seed) {
  uint64_t hash = seed ^ size * kHash1;
  for (size_t at = 0; at < size; at += 16) {
    hash = FoldMultiply(LoadLe<uint64_t>(bytes + at) ^ hash,
                        LoadLe<uint64_t>(bytes + at + 8) ^ kHash0);
  }
  return FoldMultiply(hash ^ kHash1, kHash0);
}

class Query {
 public:
  // Zeros behind the name: the rest of a block, and two pieces of a
  // dictionary, which is how far a comparison gets before it gives up.
  static constexpr size_t kZerosBehind = 48;
  static constexpr size_t kMaxInline = 512;

  Query() = default;
  explicit Query(std::string_view name) { Set(name); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  void Set(std::string_view name) {
    size_ = name.size();
    data_ = inline_;
    if (size_ > kMaxInline) [[unlikely]] {
      long_.reset(new char[size_ + kZerosBehind]);
      data_ = long_.get();
    }
    Copy(name.data(), size_, data_);
    std::memset(data_ + size_, 0, kZerosBehind);
  }

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view name() const { return {data_, size_}; }
  uint64_t Hash(uint64_t seed) const { return HashBlocks(data_, size_, seed); }

 private:
  // std::memcpy() without the call for what names usually have: whole words,
  // the last one lying over the one before.
  static void Copy(const char* from, size_t size, char* to) {
    if (size >= 16) [[likely]] {
      for (size_t at = 0; at + 16 < size; at += 16) {
        std::memcpy(to + at, from + at, 16);
      }
      std::memcpy(to + size - 16, from + size - 16, 16);
    } else if (size >= 8) {
      std::memcpy(to, from, 8);
      std::memcpy(to + size - 8, from + size - 8, 8);
    } else {
      for (size_t i = 0; i < size; ++i) to[i] = from[i];
    }
  }

  char* data_ = inline_;
  size_t size_ = 0;
  char inline_[kMaxInline + kZerosBehind];
  std::unique_ptr<char[]> long_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_QUERY_H_
