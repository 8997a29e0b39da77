// A name to look for: a copy that can be read past its end.

#ifndef KSWEEP_LIB_INDEX_QUERY_H_
#define KSWEEP_LIB_INDEX_QUERY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "lib/base/bytes.h"
#include "lib/index/name_words.h"

namespace ksweep {

class Query {
 public:
  // Zeros behind the name, which are compared with what is behind a piece.
  static constexpr size_t kZerosBehind = 32;
  // Bytes behind the name that can be read.
  static constexpr size_t kReadableBehind = 128;
  static constexpr size_t kMaxInline = 512;

  Query() = default;
  explicit Query(std::string_view name) { Set(name); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  void Set(std::string_view name) {
    if (NameWords::Cover(name.size())) [[likely]] {
      Copy(name);
    } else {
      SetOther(name);
    }
  }

  const char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void Copy(std::string_view name) {
    const NameWords at(name.size());
    const char* const p = name.data();
    // All of them before anything is stored, which might be the same memory for
    // all that a compiler knows. It can use them for the hash, too.
    const uint64_t first = LoadU64(p);
    const uint64_t second = LoadU64(p + at.second);
    const uint64_t third = LoadU64(p + at.third);
    const uint64_t fourth = LoadU64(p + at.fourth);
    const uint64_t fifth = LoadU64(p + at.fifth);
    const uint64_t last = LoadU64(p + at.last);
    std::memcpy(inline_, &first, 8);
    std::memcpy(inline_ + at.second, &second, 8);
    std::memcpy(inline_ + at.third, &third, 8);
    std::memcpy(inline_ + at.fourth, &fourth, 8);
    std::memcpy(inline_ + at.fifth, &fifth, 8);
    std::memcpy(inline_ + at.last, &last, 8);
    std::memset(inline_ + name.size(), 0, kZerosBehind);
    data_ = inline_;
    size_ = name.size();
  }

  [[gnu::noinline]] void SetOther(std::string_view name) {
    size_ = name.size();
    data_ = inline_;
    if (size_ > kMaxInline) {
      long_.reset(new char[size_ + kReadableBehind]);
      data_ = long_.get();
    }
    if (size_ != 0) std::memcpy(data_, name.data(), size_);
    std::memset(data_ + size_, 0, kZerosBehind);
  }

  char* data_ = inline_;
  size_t size_ = 0;
  std::unique_ptr<char[]> long_;
  char inline_[kMaxInline + kReadableBehind];
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_QUERY_H_
