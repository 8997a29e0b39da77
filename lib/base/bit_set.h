#ifndef KSWEEP_LIB_BASE_BIT_SET_H_
#define KSWEEP_LIB_BASE_BIT_SET_H_

#include <bit>
#include <cstdint>
#include <vector>

namespace ksweep {

// A set of small numbers that is emptied and walked through often.
class BitSet {
 public:
  // Empties it, for numbers below `end`.
  void Reset(uint32_t end) { words_.assign(end / 64 + 1, 0); }

  // Makes it take larger numbers.
  void Grow(uint32_t end) { words_.resize(end / 64 + 1); }

  void Add(uint32_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  bool Has(uint32_t i) const { return (words_[i / 64] >> (i % 64)) & 1; }

  // The first member that is not below `i`; `end` if there is none below that.
  uint32_t Next(uint32_t i, uint32_t end) const {
    if (i >= end) return end;
    uint32_t word = i / 64;
    uint64_t rest = words_[word] & (~uint64_t{0} << (i % 64));
    while (rest == 0) {
      if (++word > (end - 1) / 64) return end;
      rest = words_[word];
    }
    const uint32_t next =
        word * 64 + static_cast<uint32_t>(std::countr_zero(rest));
    return next < end ? next : end;
  }

 private:
  std::vector<uint64_t> words_ = {0};
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_BIT_SET_H_
