// What libbpf makes of a pattern, with the libbpf that the loader finds.

#ifndef KSWEEP_SELFTESTS_BENCH_ATTACH_LIBBPF_PATTERNS_H_
#define KSWEEP_SELFTESTS_BENCH_ATTACH_LIBBPF_PATTERNS_H_

#include "selftests/bench/attach/amount.h"
#include "selftests/bench/attach/report.h"

namespace ksweep::bench {

// That libbpf is refused is a result, too. False if there was none.
bool MeasureLibbpfPatterns(const Amount& amount, Report* report);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_ATTACH_LIBBPF_PATTERNS_H_
