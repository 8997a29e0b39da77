// Links of one function each, as tools make them that have a program, or a
// life, for each function.

#ifndef KSWEEP_SELFTESTS_BENCH_ATTACH_SEPARATE_LINKS_H_
#define KSWEEP_SELFTESTS_BENCH_ATTACH_SEPARATE_LINKS_H_

#include "selftests/bench/attach/amount.h"
#include "selftests/bench/attach/report.h"

namespace ksweep::bench {

// kprobe.session, by name, which is what other tools do, and by the addresses
// of one Resolve() for all. False if something fails, or if that reads a list
// of the kernel twice.
bool MeasureSeparateLinks(const Amount& amount, Report* report);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_ATTACH_SEPARATE_LINKS_H_
