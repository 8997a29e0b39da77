// How much is measured.

#ifndef KSWEEP_SELFTESTS_BENCH_ATTACH_AMOUNT_H_
#define KSWEEP_SELFTESTS_BENCH_ATTACH_AMOUNT_H_

#include <cstdint>
#include <string_view>

namespace ksweep::bench {

struct Amount {
  std::string_view core = "*";   // glob for functions of the core kernel
  uint32_t batch = 1000;         // functions of a link, where there are many
  uint32_t single = 500;         // functions with a perf event for each
  uint32_t separate_links = 50;  // of one function each
  uint32_t settle_seconds = 2;   // before each attach
};

// For a test of the benchmark itself.
inline constexpr Amount kSmoke = {"vfs_*", 10, 5, 5, 0};

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_ATTACH_AMOUNT_H_
