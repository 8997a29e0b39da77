// Functions asked for by BTF id.

#ifndef KSWEEP_SELFTESTS_BENCH_ATTACH_BTF_H_
#define KSWEEP_SELFTESTS_BENCH_ATTACH_BTF_H_

#include "selftests/bench/attach/amount.h"
#include "selftests/bench/attach/report.h"

namespace ksweep::bench {

// One look through kallsyms for each id, Resolve() for all, a trampoline
// program for each function, and one tracing_multi link, where the kernel has
// it. What would take too long is done for a few and reckoned for all. False if
// something fails.
bool MeasureBtf(const Amount& amount, Report* report);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_ATTACH_BTF_H_
