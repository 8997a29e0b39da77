#include "calltrace/totals.h"

#include "absl/strings/str_format.h"
#include "common/table.h"

namespace examples {

std::string TotalsText(const CallTrees& trees, const Totals& totals) {
  std::string text = absl::StrFormat(
      "\n%s in %s, %.2f s, detached in %s\n"
      "lost %s: %s as the buffer was full, %s in too many threads\n",
      Count(trees.call_cnt(), "call"), Count(trees.tree_cnt(), "tree"),
      totals.seconds, Milliseconds(totals.detach_ns),
      Count(totals.lost_calls(), "call"),
      WithCommas(totals.lost[CALLTRACE_LOST_FULL]),
      WithCommas(totals.lost[CALLTRACE_LOST_THREADS]));
  if (const uint64_t deep = totals.lost[CALLTRACE_LOST_DEEP]; deep > 0) {
    absl::StrAppendFormat(&text, "%s too deep\n", Count(deep, "call"));
  }
  if (trees.missed_cnt() > 0) {
    absl::StrAppendFormat(&text, "%s missed\n",
                          Count(trees.missed_cnt(), "return"));
  }
  text += MissedText(totals.missed, "hit");
  const RunTime& run = totals.run_time;
  absl::StrAppendFormat(
      &text,
      "overhead: %s of BPF programs in %s (%.0f ns each), %s of CPU time for "
      "reading\n",
      Count(run.runs, "run"), Milliseconds(static_cast<int64_t>(run.ns)),
      run.runs == 0
          ? 0.0
          : static_cast<double>(run.ns) / static_cast<double>(run.runs),
      Milliseconds(static_cast<int64_t>(totals.cpu_ns)));
  return text;
}

}  // namespace examples
