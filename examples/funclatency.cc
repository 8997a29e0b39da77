// How long the calls of functions take: one session program, attached to all
// that match, keeps the time of the entry in the call itself.
//
//   $ sudo funclatency --duration=3 --top=5 'vfs_*'
//   attached 79 functions in 1 links (resolved in 7065.2 ms, attached in
//       191.4 ms)
//   2 left out, 0 requests without a target (--verbose lists them)
//
//   FUNCTION           MODULE   CALLS   TOTAL us    AVG   P50    P99      MAX
//   vfs_fstatat        -       13,535  1384010.4  102.3  16.4  262.1  28684.3
//   vfs_statx          -       12,103  1079888.7   89.2  16.4  262.1  28613.8
//   vfs_getattr_nosec  -       13,535   212427.2   15.7   2.0   16.4  28482.4
//   vfs_fstat          -        1,432    71826.6   50.2   4.1   32.8  28679.7
//   vfs_open           -        1,431    20954.7   14.6   4.1   65.5  12615.8
//   … and 5 more that were called (--top=0)
//
//   all functions, 42,226 calls, in ns:
//   [512, 1K)      1,526  |@@                                      |
//   [1K, 2K)      11,511  |@@@@@@@@@@@@@@@@@@@@                    |
//   [2K, 4K)       2,679  |@@@@                                    |
//   [4K, 8K)       1,722  |@@@                                     |
//   [8K, 16K)     22,544  |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
//   …
//
//   42,226 calls in 3.09 s
//   missed 0 hits: 0 by ftrace's recursion guard, 0 while a BPF program ran
//
// (Linux 7.3.4 in a virtual machine without hardware help, running find.)

#include <bpf/libbpf.h>
#include <errno.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/both_ends.h"
#include "common/bpf_errors.h"
#include "common/end_signals.h"
#include "common/flags.h"
#include "common/output.h"
#include "common/percpu.h"
#include "common/progress.h"
#include "common/requests.h"
#include "common/tool.h"
#include "funclatency.ctx.skel.h"
#include "funclatency.skel.h"
#include "funclatency_report.h"
#include "ksweep/attach.h"
#include "ksweep/resolve.h"

ABSL_FLAG(uint64_t, top, 10, "functions in the table; 0: all that were called");
ABSL_FLAG(uint64_t, histograms, 0,
          "a histogram for each of that many functions of the table; 0: one "
          "over all functions");
ABSL_FLAG(std::string, unit, "us", "of the table's times: ns, us, ms or s");
ABSL_FLAG(std::string, sort, "total",
          "which functions are the first: total, calls, max or avg");

namespace examples {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kUsage =
    R"(funclatency [FLAG…] [--] REQUEST…
Times the calls of all kernel functions that match, from entry to return, also of
nested and recursive ones. P50 and P99 come from the histogram: up to twice the
true time. Needs root. Flags and requests in any order.

Requests:
  vfs_read              that name: every instance, core kernel and modules
  tcp_*  vfs_?  [a-c]*  a glob on the whole name; '*' is everything
  nf_tables:nft_*       a module part, itself a glob; vmlinux:x is the core only
  !pattern              leaves these out

Exit code: 0; 1 if it failed; 2 for wrong usage; 3 if this kernel cannot attach.)";

class Timer {
 public:
  static absl::StatusOr<Timer> Load(const std::vector<ksweep::Kind>& kinds,
                                    size_t function_cnt) {
    auto bpf = OpenBothEnds<funclatency_bpf, funclatency_ctx_bpf>(
        funclatency_bpf__create_skeleton, kinds);
    if (!bpf.ok()) return bpf.status();
    Timer timer;
    timer.bpf_ = *std::move(bpf);
    timer.bpf_->rodata->only_pid = absl::GetFlag(FLAGS_pid);
    int err = bpf_map__set_max_entries(timer.bpf_->maps.latencies,
                                       static_cast<uint32_t>(function_cnt));
    if (err == 0) err = funclatency_bpf__load(timer.bpf_.get());
    if (err != 0) return LoadError(-err);
    return timer;
  }

  const std::vector<ksweep::KindProgram>& programs() const {
    return bpf_.programs;
  }
  bool* ready() { return &bpf_->bss->ready; }

  absl::StatusOr<std::vector<Latency>> Read(size_t function_cnt) const {
    std::vector<Latency> latencies(function_cnt);
    absl::Status status = ReadPerCpu(
        bpf_map__fd(bpf_->maps.latencies), static_cast<uint32_t>(function_cnt),
        kLatencyWords, [&](uint32_t slot, absl::Span<const uint64_t> words) {
          latencies[slot].Add(words);
        });
    if (!status.ok()) return status;
    return latencies;
  }

  void ReadLost(LatencyResult* result) const {
    result->lost_entries = bpf_->bss->lost_entries;
    result->lost_returns = bpf_->bss->lost_returns;
  }

 private:
  BothEnds<funclatency_bpf> bpf_;
};

// Prints what came since the last time.
absl::Status PrintInterval(const Timer& timer,
                           const ksweep::Attachment& attachment,
                           const LatencyView& view,
                           std::vector<Latency>* last) {
  absl::StatusOr<std::vector<Latency>> now = timer.Read(last->size());
  if (!now.ok()) return now.status();
  std::vector<Latency> since;
  for (size_t i = 0; i < now->size(); ++i) {
    since.push_back((*now)[i].Since((*last)[i]));
  }
  *last = *std::move(now);
  if (WriteOut(LatencyTable(attachment, since, view))) return absl::OkStatus();
  return absl::CancelledError("stopped, as the output cannot be written");
}

// Times until the end, and detaches.
absl::StatusOr<LatencyResult> TimeCalls(Timer& timer,
                                        ksweep::Attachment& attachment,
                                        const LatencyView& view,
                                        Progress& progress) {
  const size_t function_cnt = attachment.targets().size();
  const absl::StatusOr<Missed> before =
      ReadMissed(attachment, timer.programs());
  if (!before.ok()) return before.status();
  const Clock::time_point start = Clock::now();
  absl::Status status = AnnounceAttached(attachment);
  if (!status.ok()) return status;
  std::vector<Latency> last(function_cnt);
  WaitByFlags(progress, [&] {
    status = PrintInterval(timer, attachment, view, &last);
    return status.ok();
  });
  if (!status.ok()) return status;

  LatencyResult result;
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const absl::StatusOr<Missed> after = ReadMissed(attachment, timer.programs());
  if (!after.ok()) return after.status();
  result.missed = *after - *before;
  progress.Show("detaching");
  status = attachment.Detach();
  if (!status.ok()) return status;
  absl::StatusOr<std::vector<Latency>> latencies = timer.Read(function_cnt);
  if (!latencies.ok()) return latencies.status();
  result.by_slot = *std::move(latencies);
  timer.ReadLost(&result);
  return result;
}

int Run(Query query, const std::vector<ksweep::Kind>& kinds,
        const LatencyView& view) {
  Progress progress;
  const ksweep::Resolution resolution =
      ResolveOrExit(std::move(query), progress);
  const size_t function_cnt = resolution.targets().size();
  absl::Status status = CheckCount(kinds, function_cnt);
  if (!status.ok()) return FailedToAttach(status);
  absl::StatusOr<Timer> timer = Timer::Load(kinds, function_cnt);
  if (!timer.ok()) return FailedToAttach(timer.status());

  HoldEndSignals();
  ksweep::AttachOptions options = OptionsWithProgress(progress);
  options.ready = timer->ready();
  absl::StatusOr<ksweep::Attachment> attachment =
      ksweep::Attach(resolution, timer->programs(), options);
  progress.Clear();
  if (!attachment.ok()) return FailedToAttach(attachment.status());
  const absl::StatusOr<LatencyResult> result =
      TimeCalls(*timer, *attachment, view, progress);
  progress.Clear();
  if (!result.ok()) {
    PrintError(result.status());
    return kExitFailed;
  }
  const bool written =
      WriteOut(absl::GetFlag(FLAGS_json)
                   ? LatencyJson(*attachment, *result, view)
                   : LatencyTable(*attachment, result->by_slot, view) +
                         LatencySummary(*result));
  return written ? kExitOk : kExitFailed;
}

absl::StatusOr<LatencyView> ReadView() {
  LatencyView view;
  view.top = absl::GetFlag(FLAGS_top);
  view.histograms = absl::GetFlag(FLAGS_histograms);
  absl::Status status = SetUnit(absl::GetFlag(FLAGS_unit), &view);
  if (status.ok()) status = CheckTimes();
  if (!status.ok()) return status;
  const absl::StatusOr<SortBy> sort = ParseSortBy(absl::GetFlag(FLAGS_sort));
  if (!sort.ok()) return sort.status();
  view.sort = *sort;
  return view;
}

int Main(const std::vector<std::string>& requests) {
  const absl::StatusOr<LatencyView> view = ReadView();
  if (!view.ok()) return WrongUsage(view.status());
  absl::StatusOr<BothEndsQuery> wanted = ReadBothEndsQuery(requests);
  if (!wanted.ok()) return WrongUsage(wanted.status());
  return Run(std::move(wanted->query), wanted->kinds, *view);
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  return examples::Main(
      examples::ParseFlagsOrExit(argc, argv, "funclatency", examples::kUsage));
}
