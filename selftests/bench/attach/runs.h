// The runs of the kernel's selftests and their like: everything in one link.

#ifndef KSWEEP_SELFTESTS_BENCH_ATTACH_RUNS_H_
#define KSWEEP_SELFTESTS_BENCH_ATTACH_RUNS_H_

#include "selftests/bench/attach/amount.h"
#include "selftests/bench/attach/report.h"

namespace ksweep::bench {

// False if a run fails, or attaches to something else than what the kernel's
// filter list offers.
bool MeasureRuns(const Amount& amount, Report* report);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_ATTACH_RUNS_H_
