// What funccount prints at the end.

#ifndef KSWEEP_EXAMPLES_FUNCCOUNT_REPORT_H_
#define KSWEEP_EXAMPLES_FUNCCOUNT_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/tool.h"
#include "ksweep/attachment.h"

namespace examples {

struct CountResult {
  std::vector<uint64_t> calls;  // of each slot
  double seconds = 0;           // counted
  Missed missed;
  int64_t detach_ns = 0;
};

struct CountView {
  uint64_t top = 10;  // lines; 0: all
  bool by_module = false;
  bool bars = false;
};

// The most called functions or modules.
std::string CountTable(const ksweep::Attachment& attachment,
                       const CountResult& result, const CountView& view);

// How many calls, and what was missed.
std::string CountSummary(const CountResult& result);

// One object:
//
//   attached, links, seconds, total_calls, functions_called
//   functions  the top [{name, module, addr, calls, calls_per_second}]
//   modules    instead, with by_module: [{module, functions, calls,
//              calls_per_second}]
//   missed     {link, prog}
//   left_out   {reason: number of omissions}
//   unmatched  [{request, reason}]
//   notes
//   resolve_ns, attach_ns, detach_ns
std::string CountJson(const ksweep::Attachment& attachment,
                      const CountResult& result, const CountView& view);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_FUNCCOUNT_REPORT_H_
