// The same functions attached in one link, in batches, and one by one.

#ifndef KSWEEP_SELFTESTS_BENCH_ATTACH_WAYS_H_
#define KSWEEP_SELFTESTS_BENCH_ATTACH_WAYS_H_

#include "selftests/bench/attach/amount.h"
#include "selftests/bench/attach/report.h"

namespace ksweep::bench {

// All of the core kernel, as a table with ratios to one link. Perf events are
// made for some functions, and the time reckoned for all. False if something
// fails, or attaches to something else than asked.
bool MeasureWays(const Amount& amount, Report* report);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_ATTACH_WAYS_H_
