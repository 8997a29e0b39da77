#ifndef KSWEEP_LIB_BASE_CLOCK_H_
#define KSWEEP_LIB_BASE_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace ksweep {

inline int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_CLOCK_H_
