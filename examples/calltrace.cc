// Shows what is called below an entry function: a tree for each call of it,
// with times and return values.
//
//   $ sudo calltrace --duration=2 do_sys_openat2 'path_*' 'link_path_walk*'
//       'lookup_*' vfs_open do_dentry_open security_file_open 'shmem_*'
//   attached 176 functions in 1 links (resolved in 5137.9 ms, attached in 290.1
//       ms)
//   8 left out, 0 requests without a target (--verbose lists them)
//
//   cat-287, at 33.789608 s
//    0)               |  do_sys_openat2() {
//    0)               |    path_openat() {
//    0) + 17.947 us   |      path_init(); /* ret=0xffff888004751318 */
//    0)               |      link_path_walk() {
//    0)   4.887 us    |        lookup_fast(); /* ret=0xffff888004827600 */
//    0) + 19.679 us   |      } /* link_path_walk ret=0 */
//    0)   1.793 us    |      lookup_fast(); /* ret=0xffff888004827c00 */
//    0)               |      vfs_open() {
//    0)               |        do_dentry_open() {
//    0)   3.766 us    |          path_get(); /* ret=0x200000000 */
//    0) + 18.278 us   |          security_file_open(); /* ret=0 */
//    0)   2.423 us    |          shmem_file_open(); /* ret=0 */
//    0) + 49.304 us   |        } /* do_dentry_open ret=0 */
//    0) + 55.513 us   |      } /* vfs_open ret=0 */
//    0) ! 182.303 us  |    } /* path_openat ret=0xffff888005b4a480 */
//    0) ! 232.389 us  |  } /* do_sys_openat2 ret=3 */
//
//   cat-287, at 33.797622 s
//    0)               |  do_sys_openat2() {
//    0)               |    path_openat() {
//    0) + 15.143 us   |      path_init(); /* ret=0xffff888004751318 */
//    0)               |      link_path_walk() {
//    0)   9.644 us    |        lookup_fast(); /* ret=0 */
//    0) + 36.715 us   |        lookup_slow(); /* ret=0xffff888004833840 */
//    0) + 84.216 us   |      } /* link_path_walk ret=-ENOENT */
//    0) ! 149.264 us  |    } /* path_openat ret=-ENOENT */
//    0) ! 228.042 us  |  } /* do_sys_openat2 ret=-ENOENT */
//   …
//   38 calls in 4 trees, 2.09 s, detached in 97.1 ms
//   lost 0 calls: 0 as the buffer was full, 0 in too many threads
//   missed 257 hits: 0 by ftrace's recursion guard, 257 while a BPF program ran
//   overhead: 245 runs of BPF programs in 17.9 ms (73233 ns each), 42.2 ms of
//       CPU time for reading
//
// path_get() returns nothing: what is shown is what was in the register.
//
//   $ sudo calltrace --svg=tcp.svg --perfetto=tcp.json tcp_sendmsg 'tcp_*'
//   'ip_*'
//
// makes a flame graph, as calltrace.svg beside this file is one, and a trace
// for ui.perfetto.dev. (Linux 7.3.4 in a virtual machine without hardware help:
// a real one is far faster.)

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "calltrace/call.h"
#include "calltrace/call_reader.h"
#include "calltrace/call_tree.h"
#include "calltrace/function_names.h"
#include "calltrace/outputs.h"
#include "calltrace/totals.h"
#include "calltrace/tracer.h"
#include "common/both_ends.h"
#include "common/end_signals.h"
#include "common/flags.h"
#include "common/output.h"
#include "common/progress.h"
#include "common/requests.h"
#include "common/run_time.h"
#include "common/table.h"
#include "common/tool.h"
#include "ksweep/attach.h"
#include "ksweep/resolve.h"

ABSL_FLAG(std::string, perfetto, "",
          "file for a trace in Chrome's JSON format, for ui.perfetto.dev");
ABSL_FLAG(std::string, folded, "",
          "file for folded stacks with nanoseconds, for flamegraph.pl");
ABSL_FLAG(std::string, svg, "", "file for a flame graph");
ABSL_FLAG(uint64_t, trees, 0, "end after that many call trees; 0: never");
ABSL_FLAG(uint32_t, max_depth, CALLTRACE_MAX_DEPTH,
          "calls deeper than this many are not shown; at most 64");
ABSL_FLAG(uint32_t, buffer, 8,
          "MiB between the kernel and this program, a power of two");

namespace examples {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kUsage =
    R"(calltrace [FLAG…] [--] ENTRY-REQUEST [REQUEST…]
Shows which of the functions that match are called below those that match the
first request, in what order, for how long, and what they return: as text, or as
a file. A time is from entry to return, sleep included. Needs root. Flags and
requests in any order.

Requests:
  vfs_read              that name: every instance, core kernel and modules
  tcp_*  vfs_?  [a-c]*  a glob on the whole name; '*' is everything
  nf_tables:nft_*       a module part, itself a glob; vmlinux:x is the core only
  !pattern              leaves these out

Exit code: 0; 1 if it failed; 2 for wrong usage; 3 if this kernel cannot attach.)";

uint64_t MonotonicNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

FunctionNames NamesOf(const ksweep::Attachment& attachment) {
  std::vector<std::string> names;
  for (uint32_t slot = 0; slot < attachment.targets().size(); ++slot) {
    const ksweep::Target& target = TargetOfSlot(attachment, slot);
    std::string name = Printable(target.name);
    if (!target.module.empty()) {
      absl::StrAppendFormat(&name, " [%s]", Printable(target.module));
    }
    names.push_back(std::move(name));
  }
  return FunctionNames(std::move(names));
}

// "?" if the thread is gone meanwhile.
std::string CommOf(uint64_t thread) {
  if (thread >> 32 != 0) return "swapper";
  std::string comm;
  std::getline(std::ifstream(absl::StrFormat("/proc/%d/comm", thread)), comm);
  return comm.empty() ? "?" : comm;
}

uint64_t CpuTimeNs() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(time.tv_usec) * 1'000;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

// Reads until the end. Cancelled if stdout cannot be written.
absl::Status ReadCalls(CallReader& reader, Outputs& outputs,
                       Progress& progress) {
  const uint64_t max_trees = absl::GetFlag(FLAGS_trees);
  const double duration = absl::GetFlag(FLAGS_duration);
  const Clock::time_point start = Clock::now();
  while (!EndSignalPending()) {
    const std::chrono::duration<double> passed = Clock::now() - start;
    if (passed.count() >= duration) break;
    reader.Poll();
    if (!WriteOut(outputs.TakeText())) {
      return absl::CancelledError("stopped, as the output cannot be written");
    }
    if (max_trees > 0 && reader.trees().tree_cnt() >= max_trees) break;
    if (outputs.is_text()) continue;
    progress.Show(absl::StrFormat("%s, %.0f of %g s to go (Ctrl-C ends it)",
                                  Count(reader.trees().tree_cnt(), "tree"),
                                  duration - passed.count(), duration));
  }
  return absl::OkStatus();
}

// Also what is still on its way, and what is not over.
void ReadTheRest(const Tracer& tracer, uint64_t now_ns, CallReader& reader) {
  reader.Drain();
  tracer.ForEachThread([&](uint64_t key, const calltrace_thread& thread) {
    reader.trees().AddRunning(key, thread, CommOf(key), now_ns);
  });
}

absl::StatusOr<Totals> Trace(Tracer& tracer, ksweep::Attachment& attachment,
                             CallReader& reader, Outputs& outputs,
                             Progress& progress) {
  const absl::StatusOr<Missed> before =
      ReadMissed(attachment, tracer.programs());
  if (!before.ok()) return before.status();
  const RunTime ran = RunTimeMeter::Read(tracer.programs());
  const uint64_t cpu_ns = CpuTimeNs();
  const Clock::time_point start = Clock::now();
  absl::Status status = ReadCalls(reader, outputs, progress);
  if (!status.ok()) return status;

  const Clock::time_point end = Clock::now();
  const uint64_t now_ns = MonotonicNs();
  Totals totals;
  totals.seconds = std::chrono::duration<double>(end - start).count();
  const absl::StatusOr<Missed> after =
      ReadMissed(attachment, tracer.programs());
  if (!after.ok()) return after.status();
  totals.missed = *after - *before;
  totals.run_time = RunTimeMeter::Read(tracer.programs());
  totals.run_time.runs -= ran.runs;
  totals.run_time.ns -= ran.ns;
  totals.cpu_ns = CpuTimeNs() - cpu_ns;
  progress.Show("detaching");
  status = attachment.Detach();
  if (!status.ok()) return status;
  totals.detach_ns = std::chrono::nanoseconds(Clock::now() - end).count();
  ReadTheRest(tracer, now_ns, reader);
  absl::StatusOr<std::vector<uint64_t>> lost = tracer.ReadLost();
  if (!lost.ok()) return lost.status();
  totals.lost = *std::move(lost);
  return totals;
}

bool IsFor(const ksweep::Target& target, uint32_t request) {
  return std::find(target.requests.begin(), target.requests.end(), request) !=
         target.requests.end();
}

absl::Status CheckEntry(const ksweep::Resolution& resolution,
                        uint32_t request) {
  if (!resolution.ForRequest(request).empty()) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrFormat("no function matches the entry request '%s'",
                      resolution.requests()[request].ToString()));
}

absl::Status SetEntries(const ksweep::Attachment& attachment, uint32_t request,
                        Tracer& tracer) {
  for (uint32_t slot = 0; slot < attachment.targets().size(); ++slot) {
    if (!IsFor(TargetOfSlot(attachment, slot), request)) continue;
    absl::Status status = tracer.SetEntry(slot);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

int Fail(const absl::Status& status) {
  PrintError(status);
  return kExitFailed;
}

int Run(Query query, const std::vector<ksweep::Kind>& kinds,
        uint32_t entry_request, const std::string& title) {
  absl::StatusOr<Outputs> outputs =
      Outputs::Create({.perfetto = absl::GetFlag(FLAGS_perfetto),
                       .folded = absl::GetFlag(FLAGS_folded),
                       .svg = absl::GetFlag(FLAGS_svg)});
  if (!outputs.ok()) return Fail(outputs.status());
  Progress progress;
  const ksweep::Resolution resolution =
      ResolveOrExit(std::move(query), progress);
  const size_t function_cnt = resolution.targets().size();
  absl::Status status = CheckEntry(resolution, entry_request);
  if (status.ok()) status = CheckCount(kinds, function_cnt);
  if (!status.ok()) return Fail(status);
  absl::StatusOr<Tracer> tracer =
      Tracer::Load(kinds, {.function_cnt = static_cast<uint32_t>(function_cnt),
                           .buffer_bytes = absl::GetFlag(FLAGS_buffer) << 20,
                           .max_depth = absl::GetFlag(FLAGS_max_depth),
                           .only_pid = absl::GetFlag(FLAGS_pid)});
  if (!tracer.ok()) return FailedToAttach(tracer.status());

  HoldEndSignals();
  const RunTimeMeter meter;
  ksweep::AttachOptions options = OptionsWithProgress(progress);
  options.ready = tracer->ready();
  absl::StatusOr<ksweep::Attachment> attachment =
      ksweep::Attach(resolution, tracer->programs(), options);
  progress.Clear();
  if (!attachment.ok()) return FailedToAttach(attachment.status());

  const FunctionNames names = NamesOf(*attachment);
  absl::StatusOr<std::unique_ptr<CallReader>> reader;
  reader = CallReader::Create(
      tracer->calls_fd(),
      [&, max_trees = absl::GetFlag(FLAGS_trees)](const CallTree& tree) {
        // Some more may come until the end.
        const bool wanted =
            max_trees == 0 || (*reader)->trees().tree_cnt() <= max_trees;
        if (wanted) outputs->Add(tree, names);
      });
  if (!reader.ok()) return Fail(reader.status());
  // Whoever waits for the announcement may rely on being traced.
  status = SetEntries(*attachment, entry_request, *tracer);
  if (status.ok()) status = AnnounceAttached(*attachment);
  if (!status.ok()) return Fail(status);
  const absl::StatusOr<Totals> totals =
      Trace(*tracer, *attachment, **reader, *outputs, progress);
  progress.Clear();
  if (!totals.ok()) return Fail(totals.status());
  status = outputs->Finish(title, totals->lost_calls());
  if (!status.ok()) return Fail(status);
  const std::string text =
      outputs->TakeText() + TotalsText((*reader)->trees(), *totals);
  return WriteOut(text) ? kExitOk : kExitFailed;
}

absl::Status CheckFlags() {
  const uint32_t depth = absl::GetFlag(FLAGS_max_depth);
  if (depth < 1 || depth > CALLTRACE_MAX_DEPTH) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--max_depth=%d: not a number from 1 to %d", depth,
                        CALLTRACE_MAX_DEPTH));
  }
  const uint32_t buffer = absl::GetFlag(FLAGS_buffer);
  if (buffer < 1 || buffer > 1024 || (buffer & (buffer - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--buffer=%d: not a power of two from 1 to 1024", buffer));
  }
  if (absl::GetFlag(FLAGS_json)) {
    return absl::InvalidArgumentError(
        "--json: JSON is what --perfetto=FILE writes, for a viewer");
  }
  if (absl::GetFlag(FLAGS_interval) > 0) {
    return absl::InvalidArgumentError(
        "--interval: there is none, each tree is printed when it is complete");
  }
  return CheckTimes();
}

int Main(const std::vector<std::string>& requests) {
  absl::Status status = CheckFlags();
  if (!status.ok()) return WrongUsage(status);
  absl::StatusOr<BothEndsQuery> wanted = ReadBothEndsQuery(requests);
  if (!wanted.ok()) return WrongUsage(wanted.status());
  // Requests of --requests=FILE come before those of the command line.
  const size_t entry_request =
      requests.empty() ? 0 : wanted->query.requests.size() - requests.size();
  const std::string title =
      absl::StrFormat("calltrace %s", absl::StrJoin(requests, " "));
  return Run(std::move(wanted->query), wanted->kinds,
             static_cast<uint32_t>(entry_request), title);
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  return examples::Main(
      examples::ParseFlagsOrExit(argc, argv, "calltrace", examples::kUsage));
}
