// Call trees in Chrome's trace event format, which ui.perfetto.dev,
// chrome://tracing and speedscope.app open.

#ifndef KSWEEP_EXAMPLES_CALLTRACE_CHROME_TRACE_H_
#define KSWEEP_EXAMPLES_CALLTRACE_CHROME_TRACE_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "calltrace/call_tree.h"
#include "calltrace/function_names.h"

namespace examples {

// Makes the pieces of one file: Begin(), each tree, End(). A call is an event
// of type X on the track of its thread, with start and duration in microseconds
// to the nanosecond and its return value as an argument.
class ChromeTrace {
 public:
  std::string Begin();
  std::string Add(const CallTree& tree, const FunctionNames& names);
  // `lost` calls are in no tree or missing in one.
  std::string End(uint64_t lost);

 private:
  // Names the track of the tree's thread, if that is new.
  void AppendThread(const CallTree& tree, std::string* out);

  absl::flat_hash_map<uint64_t, std::string> comms_;  // by thread
  bool first_ = true;
};

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_CALLTRACE_CHROME_TRACE_H_
