// What funccount prints at the end.

#ifndef KSWEEP_EXAMPLES_FUNCCOUNT_REPORT_H_
#define KSWEEP_EXAMPLES_FUNCCOUNT_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ksweep/resolve.h"

namespace examples {

struct CountResult {
  ksweep::Resolution resolution;
  std::vector<uint32_t> targets;  // of each slot, Attachment::targets()
  std::vector<uint64_t> calls;    // of each slot
  uint64_t links = 0;
  double seconds = 0;  // counted
  // Hits that ftrace's recursion guard skipped, and hits while another BPF
  // program ran on the same CPU.
  uint64_t missed_by_link = 0;
  uint64_t missed_by_prog = 0;
  int64_t attach_ns = 0;
  int64_t detach_ns = 0;
};

// "attached N functions in M links …"; with everything that is left out if
// `verbose`.
std::string AttachedText(const CountResult& result, bool verbose);

// The `top` most called functions, or all that were called if it is 0, and what
// was missed.
std::string CountText(const CountResult& result, uint64_t top);

// One object:
//
//   attached, links, seconds, total_calls, functions_called
//   functions  the top [{name, module, addr, calls, calls_per_second}]
//   missed     {link, prog}
//   left_out   {reason: number of omissions}
//   unmatched  [{request, reason}]
//   notes
//   resolve_ns, attach_ns, detach_ns
std::string CountJson(const CountResult& result, uint64_t top);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_FUNCCOUNT_REPORT_H_
