// What errtrace prints.

#ifndef KSWEEP_EXAMPLES_ERRTRACE_REPORT_H_
#define KSWEEP_EXAMPLES_ERRTRACE_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/error_name.h"
#include "common/tool.h"
#include "ksweep/attachment.h"

namespace examples {

// One error, from the function that returned it first to the outermost one.
struct ErrorChain {
  uint32_t pid = 0;
  std::string comm;
  int err = 0;
  std::vector<uint32_t> slots;
  uint64_t more = 0;  // functions between the last two that did not fit
};

// How often, by error and the slot that returned it first.
using ErrorCounts = std::map<std::pair<int, uint32_t>, uint64_t>;

struct ErrorResult {
  std::vector<ErrorChain> chains;  // with --json
  ErrorCounts counts;
  double seconds = 0;
  uint64_t lost_events = 0;
  uint64_t lost_calls = 0;
  Missed missed;
};

// "  123  cat  ENOENT  path_openat → do_filp_open → …\n"
std::string ChainLine(const ksweep::Attachment& attachment,
                      const ErrorChain& chain);

// Errors by the function they came from, the most frequent first; `top` of
// them, or all if it is 0.
std::string ErrorTable(const ksweep::Attachment& attachment,
                       const ErrorCounts& counts, uint64_t top);

// How many errors, and what was lost.
std::string ErrorSummary(const ErrorResult& result);

// One object:
//
//   attached, links, seconds, lost_events, lost_calls
//   missed     {link, prog}
//   errors     [{error, errno, first, module, times}]
//   chains     [{pid, comm, error, errno, functions: [names]}]
std::string ErrorJson(const ksweep::Attachment& attachment,
                      const ErrorResult& result, uint64_t top);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_ERRTRACE_REPORT_H_
