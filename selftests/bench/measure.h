// Timing that other load on the machine disturbs little.

#ifndef KSWEEP_SELFTESTS_BENCH_MEASURE_H_
#define KSWEEP_SELFTESTS_BENCH_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "selftests/bench/ways.h"

namespace ksweep::bench {

// What was measured of one way. Times are CPU time of the thread.
struct Figures {
  std::string label;
  Way::Role role = Way::Role::kOther;
  int reps = 0;
  // To the floor: median of the ratios within each repetition, and the ratio
  // of the shortest times.
  double ratio = 0;
  double min_ratio = 0;
  double ms = 0;  // median
  double min_ms = 0;
  // Over the floor for each line, median. Of what does not read: all its time.
  double ns_over = 0;
  int64_t peak_bytes = 0;  // of the heap, beyond what was there before
};

// Runs all `ways`, the first of which is the floor, once per repetition in
// changing order. A way that takes more than a second is run only once.
std::vector<Figures> Measure(const std::vector<Way>& ways, uint64_t lines,
                             int reps);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_MEASURE_H_
