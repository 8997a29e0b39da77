// What tracing came to and what it cost.

#ifndef KSWEEP_EXAMPLES_CALLTRACE_TOTALS_H_
#define KSWEEP_EXAMPLES_CALLTRACE_TOTALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "calltrace/call.h"
#include "calltrace/call_tree.h"
#include "common/run_time.h"
#include "common/tool.h"

namespace examples {

struct Totals {
  double seconds = 0;
  int64_t detach_ns = 0;
  std::vector<uint64_t> lost;  // by calltrace_lost
  Missed missed;
  RunTime run_time;
  uint64_t cpu_ns = 0;  // of this process

  uint64_t lost_calls() const {
    return lost[CALLTRACE_LOST_FULL] + lost[CALLTRACE_LOST_THREADS];
  }
};

std::string TotalsText(const CallTrees& trees, const Totals& totals);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_CALLTRACE_TOTALS_H_
