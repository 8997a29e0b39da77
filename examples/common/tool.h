// What the examples that attach have in common: flags, and the way from the
// requests to functions and to links.

#ifndef KSWEEP_EXAMPLES_COMMON_TOOL_H_
#define KSWEEP_EXAMPLES_COMMON_TOOL_H_

#include <bpf/libbpf.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/flags/declare.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/progress.h"
#include "common/requests.h"
#include "ksweep/attach.h"
#include "ksweep/attachment.h"
#include "ksweep/resolve.h"

ABSL_DECLARE_FLAG(double, duration);
ABSL_DECLARE_FLAG(double, interval);
ABSL_DECLARE_FLAG(uint32_t, pid);

namespace examples {

// InvalidArgument for numbers that are none of the flag's.
absl::Status CheckTimes();

// Says what is wrong and returns the exit code: 3 if the kernel, not the
// request, is in the way.
int FailedToAttach(const absl::Status& status);

// Resolves, with progress. Ends the program, with a message and exit code 1 or
// 3, if that fails or no function is left to attach to.
ksweep::Resolution ResolveOrExit(Query query, Progress& progress);

// Options that show the progress, stop at Ctrl-C, and skip what the kernel
// refuses, which AttachedText() says. Call HoldEndSignals() before Attach().
ksweep::AttachOptions OptionsWithProgress(Progress& progress);

// "attached N functions in M links (…)", and what was left out. With --verbose
// everything that was, and the report of the attach.
std::string AttachedText(const ksweep::Attachment& attachment);

// Writes it, and the notes of the resolution, to stderr if --json wants stdout
// for itself. Cancelled if stdout cannot be written.
absl::Status AnnounceAttached(const ksweep::Attachment& attachment);

// The target behind a slot, which is the cookie.
const ksweep::Target& TargetOfSlot(const ksweep::Attachment& attachment,
                                   uint32_t slot);

// Hits that did not run the program.
struct Missed {
  uint64_t by_link = 0;  // by the recursion guard of ftrace, since Linux 6.7
  uint64_t by_prog = 0;  // while a BPF program ran on the CPU, since 5.12

  uint64_t total() const { return by_link + by_prog; }
};

// Since the programs were loaded, so the count of a time is a difference.
absl::StatusOr<Missed> ReadMissed(
    const ksweep::Attachment& attachment,
    absl::Span<const ksweep::KindProgram> programs);
Missed operator-(const Missed& a, const Missed& b);

// "missed 3 calls: 1 by ftrace's recursion guard, 2 while a BPF program ran\n"
std::string MissedText(const Missed& missed, std::string_view noun);

// Waits for the end of --duration or Ctrl-C. Calls `at_interval` after each
// --interval but the last; false from it ends the waiting.
void WaitByFlags(Progress& progress, absl::FunctionRef<bool()> at_interval);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_TOOL_H_
