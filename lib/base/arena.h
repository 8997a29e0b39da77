// Memory that is given back all at once.

#ifndef KSWEEP_LIB_BASE_ARENA_H_
#define KSWEEP_LIB_BASE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace ksweep {

// Hands out pieces of large blocks. Pieces do not move, also when the arena
// itself is moved, and live as long as it.
class Arena {
 public:
  static constexpr size_t kBlockBytes = 64 * 1024;

  Arena() = default;
  Arena(Arena&& other) noexcept { *this = std::move(other); }
  Arena& operator=(Arena&& other) noexcept {
    blocks_ = std::move(other.blocks_);
    other.blocks_.clear();
    used_ = std::exchange(other.used_, 0);
    size_ = std::exchange(other.size_, 0);
    total_ = std::exchange(other.total_, 0);
    return *this;
  }

  void* Allocate(size_t bytes, size_t align) {
    size_t start = (used_ + align - 1) & ~(align - 1);
    if (blocks_.empty() || start + bytes > size_) {
      AddBlock(bytes);
      start = 0;
    }
    used_ = start + bytes;
    return blocks_.back().get() + start;
  }

  std::string_view Copy(std::string_view text) {
    if (text.empty()) return {};
    char* place = static_cast<char*>(Allocate(text.size(), 1));
    std::memcpy(place, text.data(), text.size());
    return {place, text.size()};
  }

  template <typename T>
  absl::Span<const T> Copy(absl::Span<const T> items) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (items.empty()) return {};
    T* place = static_cast<T*>(Allocate(items.size() * sizeof(T), alignof(T)));
    std::memcpy(static_cast<void*>(place), items.data(),
                items.size() * sizeof(T));
    return {place, items.size()};
  }

  size_t bytes() const { return total_; }

 private:
  void AddBlock(size_t at_least) {
    size_ = at_least > kBlockBytes ? at_least : kBlockBytes;
    // Not value-initialised: the pages are touched when they are used.
    blocks_.emplace_back(new char[size_]);
    total_ += size_;
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t used_ = 0;
  size_t size_ = 0;
  size_t total_ = 0;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_ARENA_H_
