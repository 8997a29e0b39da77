// Which function returned an error first, when a call ends with that error: the
// chain of functions that handed it on, up to the outermost one traced.
//
//   $ sudo errtrace syscall:openat syscall:newfstatat do_sys_openat2
//       'do_fil[ep]_open' path_openat 'step_into*' 'link_path_wal*'
//       path_lookupat filename_lookup vfs_statx vfs_fstatat
//   attached 11 functions in 1 links (resolved in 8002.8 ms, attached in
//       244.5 ms)
//       171 cat             ENOENT       step_into_slowpath → path_openat →
//           do_file_open → do_sys_openat2 → __x64_sys_openat
//       171 cat             ENOTDIR      link_path_walk → path_openat →
//           do_file_open → do_sys_openat2 → __x64_sys_openat
//       172 ls              ENOENT       step_into_slowpath → path_lookupat →
//           filename_lookup → vfs_statx → vfs_fstatat → __x64_sys_newfstatat
//
//   ERROR    FIRST RETURNED BY   MODULE  TIMES
//   ENOENT   step_into_slowpath  -           2
//   ENOTDIR  link_path_walk      -           1
//
//   3 errors in 0.50 s
//   missed 0 hits: 0 by ftrace's recursion guard, 0 while a BPF program ran
//
// (Linux 7.3.4 in a virtual machine without hardware help; `cat /etc/nosuch
// /etc/passwd/x; ls /nodir`. Long lines are broken here.)

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "common/both_ends.h"
#include "common/bpf_errors.h"
#include "common/end_signals.h"
#include "common/flags.h"
#include "common/output.h"
#include "common/progress.h"
#include "common/requests.h"
#include "common/tool.h"
#include "errtrace.ctx.skel.h"
#include "errtrace.skel.h"
#include "errtrace_report.h"
#include "ksweep/attach.h"
#include "ksweep/resolve.h"

ABSL_FLAG(uint64_t, top, 10, "lines of the table at the end; 0: all");
ABSL_FLAG(std::vector<std::string>, error, {},
          "only these errors, such as ENOENT; several with commas");

namespace examples {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::string_view kUsage =
    R"(errtrace [FLAG…] [--] REQUEST…
Prints, for each call that ends with an error, the functions that returned it,
the first one first. Of the functions that match: ask for a system call's entry
point and for what may be below it. Functions that return an unsigned number or
nothing can be taken for one that failed. Needs root.

Requests:
  vfs_read              that name: every instance, core kernel and modules
  tcp_*  vfs_?  [a-c]*  a glob on the whole name; '*' is everything
  nf_tables:nft_*       a module part, itself a glob; vmlinux:x is the core only
  syscall:openat        the entry point of a system call
  !pattern              leaves these out

Exit code: 0; 1 if it failed; 2 for wrong usage; 3 if this kernel cannot attach.)";

// As in errtrace.bpf.c.
constexpr uint32_t kMaxChain = 16;
struct ChainEvent {
  uint32_t pid;
  int32_t err;
  uint32_t cnt;
  uint32_t slot[kMaxChain];
  char comm[16];
};

bool IsWanted(int err) {
  const std::vector<std::string> wanted = absl::GetFlag(FLAGS_error);
  return wanted.empty() || std::find(wanted.begin(), wanted.end(),
                                     ErrorName(err)) != wanted.end();
}

ErrorChain ToChain(const ChainEvent& event) {
  const uint32_t kept = std::min(event.cnt, kMaxChain);
  ErrorChain chain;
  chain.pid = event.pid;
  chain.comm.assign(event.comm, strnlen(event.comm, sizeof(event.comm)));
  chain.err = event.err;
  chain.slots.assign(event.slot, event.slot + kept);
  chain.more = event.cnt - kept;
  return chain;
}

// The BPF programs.
class Tracer {
 public:
  static absl::StatusOr<Tracer> Load(const std::vector<ksweep::Kind>& kinds) {
    auto bpf = OpenBothEnds<errtrace_bpf, errtrace_ctx_bpf>(
        errtrace_bpf__create_skeleton, kinds);
    if (!bpf.ok()) return bpf.status();
    Tracer tracer;
    tracer.bpf_ = *std::move(bpf);
    tracer.bpf_->rodata->only_pid = absl::GetFlag(FLAGS_pid);
    const int err = errtrace_bpf__load(tracer.bpf_.get());
    if (err != 0) return LoadError(-err);
    return tracer;
  }

  const std::vector<ksweep::KindProgram>& programs() const {
    return bpf_.programs;
  }
  bool* ready() { return &bpf_->bss->ready; }
  int events_fd() const { return bpf_map__fd(bpf_->maps.events); }

  void ReadLost(ErrorResult* result) const {
    result->lost_events = bpf_->bss->lost_events;
    result->lost_calls = bpf_->bss->lost_entries + bpf_->bss->lost_returns;
  }

 private:
  BothEnds<errtrace_bpf> bpf_;
};

// Takes chains as they come, and prints them unless --json.
class Listener {
 public:
  Listener(const ksweep::Attachment& attachment, ErrorResult* result)
      : attachment_(attachment), result_(result) {}

  absl::Status Open(int events_fd) {
    ring_.reset(ring_buffer__new(events_fd, &Listener::OnEvent, this, nullptr));
    return ring_ != nullptr
               ? absl::OkStatus()
               : absl::ErrnoToStatus(errno, "cannot read the events");
  }

  // False if the output cannot be written.
  bool Poll(int milliseconds) {
    ring_buffer__poll(ring_.get(), milliseconds);
    const bool written = text_.empty() || WriteOut(text_);
    text_.clear();
    return written;
  }

  // False as well. What came in the interval.
  bool PrintInterval() {
    ErrorCounts since = result_->counts;
    for (const auto& [key, cnt] : last_) {
      if ((since[key] -= cnt) == 0) since.erase(key);
    }
    last_ = result_->counts;
    return WriteOut(ErrorTable(attachment_, since, absl::GetFlag(FLAGS_top)) +
                    "\n");
  }

 private:
  struct Free {
    void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
  };

  static int OnEvent(void* self, void* data, size_t size) {
    if (size >= sizeof(ChainEvent)) {
      static_cast<Listener*>(self)->Add(*static_cast<ChainEvent*>(data));
    }
    return 0;
  }

  void Add(const ChainEvent& event) {
    if (event.cnt == 0 || !IsWanted(event.err)) return;
    ErrorChain chain = ToChain(event);
    ++result_->counts[{chain.err, chain.slots.front()}];
    if (absl::GetFlag(FLAGS_json)) {
      result_->chains.push_back(std::move(chain));
    } else {
      text_ += ChainLine(attachment_, chain);
    }
  }

  const ksweep::Attachment& attachment_;
  ErrorResult* result_;
  std::unique_ptr<ring_buffer, Free> ring_;
  std::string text_;
  ErrorCounts last_;
};

// Until the end of --duration or Ctrl-C. False if the output cannot be written.
bool Listen(Listener& listener) {
  const Clock::time_point start = Clock::now();
  const double duration = absl::GetFlag(FLAGS_duration);
  const double interval = absl::GetFlag(FLAGS_interval);
  double next = interval;
  while (!EndSignalPending()) {
    const double left = duration - Seconds(Clock::now() - start).count();
    if (left <= 0) return true;
    if (!listener.Poll(static_cast<int>(std::min(100.0, left * 1e3)))) {
      return false;
    }
    if (interval > 0 && Seconds(Clock::now() - start).count() >= next) {
      if (!listener.PrintInterval()) return false;
      next += interval;
    }
  }
  return true;
}

// Traces until the end, and detaches.
absl::StatusOr<ErrorResult> TraceErrors(Tracer& tracer,
                                        ksweep::Attachment& attachment) {
  ErrorResult result;
  Listener listener(attachment, &result);
  absl::Status status = listener.Open(tracer.events_fd());
  if (!status.ok()) return status;
  const absl::StatusOr<Missed> before =
      ReadMissed(attachment, tracer.programs());
  if (!before.ok()) return before.status();
  const Clock::time_point start = Clock::now();
  status = AnnounceAttached(attachment);
  if (!status.ok()) return status;
  const bool written = Listen(listener);
  result.seconds = Seconds(Clock::now() - start).count();
  const absl::StatusOr<Missed> after =
      ReadMissed(attachment, tracer.programs());
  if (!after.ok()) return after.status();
  result.missed = *after - *before;
  status = attachment.Detach();
  if (!status.ok()) return status;
  if (!written || !listener.Poll(0)) {
    return absl::CancelledError("stopped, as the output cannot be written");
  }
  tracer.ReadLost(&result);
  return result;
}

int Run(Query query, const std::vector<ksweep::Kind>& kinds) {
  Progress progress;
  const ksweep::Resolution resolution =
      ResolveOrExit(std::move(query), progress);
  absl::Status status = CheckCount(kinds, resolution.targets().size());
  if (!status.ok()) return FailedToAttach(status);
  absl::StatusOr<Tracer> tracer = Tracer::Load(kinds);
  if (!tracer.ok()) return FailedToAttach(tracer.status());

  HoldEndSignals();
  ksweep::AttachOptions options = OptionsWithProgress(progress);
  options.ready = tracer->ready();
  absl::StatusOr<ksweep::Attachment> attachment =
      ksweep::Attach(resolution, tracer->programs(), options);
  progress.Clear();
  if (!attachment.ok()) return FailedToAttach(attachment.status());
  const absl::StatusOr<ErrorResult> result = TraceErrors(*tracer, *attachment);
  if (!result.ok()) {
    PrintError(result.status());
    return kExitFailed;
  }
  const uint64_t top = absl::GetFlag(FLAGS_top);
  const bool written = WriteOut(
      absl::GetFlag(FLAGS_json) ? ErrorJson(*attachment, *result, top)
                                : ErrorTable(*attachment, result->counts, top) +
                                      ErrorSummary(*result));
  return written ? kExitOk : kExitFailed;
}

int Main(const std::vector<std::string>& requests) {
  absl::Status status = CheckTimes();
  if (!status.ok()) return WrongUsage(status);
  absl::StatusOr<BothEndsQuery> wanted = ReadBothEndsQuery(requests);
  if (!wanted.ok()) return WrongUsage(wanted.status());
  return Run(std::move(wanted->query), wanted->kinds);
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  return examples::Main(
      examples::ParseFlagsOrExit(argc, argv, "errtrace", examples::kUsage));
}
