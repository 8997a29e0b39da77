// Most names, read without a branch that depends on their length.

#ifndef KSWEEP_LIB_INDEX_NAME_WORDS_H_
#define KSWEEP_LIB_INDEX_NAME_WORDS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace ksweep {

// Where six words of eight bytes lie that cover a name: three from its start,
// three up to its end. They overlap as far as it is shorter than all of them,
// and none reaches out of it.
class NameWords {
 public:
  static constexpr size_t kMinSize = 8;
  static constexpr size_t kMaxSize = 48;

  // Whether they can. Of 100 functions of a kernel, they can for 95.
  static bool Cover(size_t size) {
    return size - kMinSize <= kMaxSize - kMinSize;
  }

  explicit NameWords(size_t size)
      : last(size - 8),
        second(kStarts[last].second),
        third(kStarts[last].third),
        fourth(last - third),
        fifth(last - second) {}

  // Offsets in the name. The first is 0.
  const size_t last, second, third, fourth, fifth;

 private:
  // A table, as compilers make branches of std::min().
  struct Starts {
    uint8_t second, third;
  };
  static constexpr std::array<Starts, kMaxSize - kMinSize + 1> kStarts = [] {
    std::array<Starts, kMaxSize - kMinSize + 1> starts = {};
    for (size_t last = 0; last < starts.size(); ++last) {
      starts[last].second = static_cast<uint8_t>(std::min<size_t>(last, 8));
      starts[last].third = static_cast<uint8_t>(std::min<size_t>(last, 16));
    }
    return starts;
  }();
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_NAME_WORDS_H_
