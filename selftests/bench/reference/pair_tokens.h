// The compression of names that the kernel's build uses (Linux v6.12,
// scripts/kallsyms.c): a byte that no name uses stands for the pair of bytes
// that is most frequent, until none is left.

#ifndef KSWEEP_SELFTESTS_BENCH_REFERENCE_PAIR_TOKENS_H_
#define KSWEEP_SELFTESTS_BENCH_REFERENCE_PAIR_TOKENS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace ksweep::bench {

inline constexpr size_t kTokenCnt = 256;

// What a token stands for. Bytes that occur stand for themselves.
using Tokens = std::array<std::string, kTokenCnt>;

// Names, one behind the other in one array.
struct PackedNames {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> begins;
  std::vector<uint16_t> lens;

  absl::Span<const uint8_t> Get(size_t i) const {
    return {bytes.data() + begins[i], lens[i]};
  }
};

// Replaces the bytes of each name by tokens. Equal input gives equal output.
Tokens Compress(PackedNames* names);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_REFERENCE_PAIR_TOKENS_H_
