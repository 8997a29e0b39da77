// Stays attached to functions of modules that come and go. Looks at the list of
// modules, which is small, and sweeps the symbols only for a change that the
// requests look into.
//
//   $ (sleep 15; echo release dummy; sleep 12; echo quit) |
//       sudo watcher 'nf_*:*' 'dummy:*'
//   watching, 2 requests without a target so far
//   + nf_tables: 518 functions attached
//   + dummy: 7 functions attached
//   - dummy: released
//   + dummy: 7 functions attached
//
//   MODULE     TIMES  SLOTS  CALLS
//   nf_tables      1    518     49
//   dummy          2     14     17
//
//   26.3 s, 19 looks at the module list, 4 sweeps of kallsyms
//
// (Linux 7.3.4 in a virtual machine; meanwhile, nf_tables was loaded, and dummy
// loaded, unloaded after its release, and loaded again.)

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "call_counter.h"
#include "common/bpf_errors.h"
#include "common/end_signals.h"
#include "common/flags.h"
#include "common/input_lines.h"
#include "common/left_outs.h"
#include "common/output.h"
#include "common/progress.h"
#include "common/requests.h"
#include "common/table.h"
#include "common/tool.h"
#include "ksweep/attach.h"
#include "ksweep/module_watch.h"
#include "ksweep/resolve.h"
#include "watcher_report.h"

ABSL_FLAG(uint32_t, max_slots, 65536,
          "counters; each function of a module that is attached again takes "
          "another one");

namespace examples {
namespace {

using Clock = std::chrono::steady_clock;
using ksweep::Kind;

constexpr std::string_view kUsage =
    R"(watcher [FLAG…] [--] REQUEST…
Counts the calls of all kernel functions that match, also those of modules that
are loaded later. Needs root. Looks for them after each --interval; --duration=0
is without end. Flags and requests in any order.

Requests:
  nf_*:*                all functions of modules; both parts are globs
  dummy:dummy_xmit      one of a module
  vfs_*                 a glob on the core kernel and all modules
  !pattern              leaves these out

While functions of a module are attached it cannot be unloaded. Commands on the
standard input:
  release MODULE        lets go of it, until it is loaded again
  quit                  detaches and ends, as Ctrl-C does

Exit code: 0; 1 if it failed; 2 for wrong usage; 3 if this kernel cannot attach.)";

// With --json stdout is for the result.
bool Say(const std::string& text) {
  if (!absl::GetFlag(FLAGS_json)) return text.empty() || WriteOut(text);
  WriteErr(text);
  return true;
}

// How the answer was come by, for people.
void SayNotes(const ksweep::Resolution& resolution) {
  std::string text;
  AppendNotes(resolution.stats(), &text);
  WriteErr(text);
}

std::string WatchingText(size_t waiting) {
  if (waiting == 0) return "watching\n";
  return absl::StrFormat("watching, %s without a target so far\n",
                         Count(waiting, "request"));
}

// What is attached, kept in line with the modules.
class Watcher {
 public:
  Watcher(Query query, CallCounter counter)
      : query_(std::move(query)),
        counter_(std::move(counter)),
        watch_(query_.files) {}

  // What there is at the start.
  absl::Status Start() {
    // Looks first: what is loaded in between shows as a change.
    const absl::StatusOr<ksweep::ModuleChanges> loaded = Look();
    return loaded.ok() ? Sweep() : loaded.status();
  }

  // What changed since.
  absl::Status Poll() {
    absl::StatusOr<ksweep::ModuleChanges> changes = Look();
    if (!changes.ok()) return changes.status();
    for (const std::string& module : changes->gone) {
      held_back_.erase(module);
      // Only single kprobes let it go without being asked.
      Release(module, "unloaded").IgnoreError();
    }
    // What is gone is released: no sweep finds more.
    changes->gone.clear();
    return changes->Concern(query_.requests) ? Sweep() : absl::OkStatus();
  }

  // Lets go of `module`, and leaves it alone until it is loaded again.
  absl::Status ReleaseForNow(const std::string& module) {
    absl::Status status = Release(module, "released");
    if (status.ok()) held_back_.insert(module);
    return status;
  }

  absl::StatusOr<WatchResult> Finish() {
    WatchResult result;
    result.polls = polls_;
    result.sweeps = sweeps_;
    if (!attachment_.has_value()) return result;
    const absl::Status status = attachment_->Detach();
    if (!status.ok()) return status;
    absl::StatusOr<std::vector<uint64_t>> calls =
        counter_.ReadCalls(owners_.modules().size());
    if (!calls.ok()) return calls.status();
    result.calls = *std::move(calls);
    return result;
  }

  const SlotOwners& owners() const { return owners_; }

  // Requests without a target so far.
  size_t waiting() const { return waiting_; }

 private:
  absl::StatusOr<ksweep::ModuleChanges> Look() {
    ++polls_;
    return watch_.Poll();
  }

  // The requests without what is held back.
  std::vector<ksweep::Request> Requests() const {
    std::vector<ksweep::Request> requests = query_.requests;
    for (const std::string& module : held_back_) {
      absl::StatusOr<ksweep::Request> all =
          ksweep::Request::Glob("*", ksweep::Owner::Module(module));
      if (all.ok()) requests.push_back(all->set_deny());
    }
    return requests;
  }

  absl::Status Sweep() {
    ++sweeps_;
    const absl::StatusOr<ksweep::Resolution> resolution =
        ksweep::Resolve(Requests(), query_.files, query_.options);
    if (!resolution.ok()) return resolution.status();
    if (sweeps_ == 1) SayNotes(*resolution);
    waiting_ = resolution->unmatched().size();
    const AttachedCounts before = Attached();
    const absl::Status status =
        attachment_.has_value() ? Update(*resolution) : Attach(*resolution);
    if (!status.ok() || !attachment_.has_value()) return status;
    owners_.Learn(*attachment_);
    return SayChanges(before, "no longer there");
  }

  // The first time, which needs a function.
  absl::Status Attach(const ksweep::Resolution& resolution) {
    const size_t cnt = resolution.targets().size();
    if (cnt == 0) return absl::OkStatus();
    if (cnt > absl::GetFlag(FLAGS_max_slots)) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("%d functions match, and --max_slots is %d", cnt,
                          absl::GetFlag(FLAGS_max_slots)));
    }
    ksweep::AttachOptions options = OptionsWithProgress(progress_);
    options.updatable = true;
    absl::StatusOr<ksweep::Attachment> attachment =
        counter_.Attach(resolution, std::move(options));
    progress_.Clear();
    if (!attachment.ok()) return attachment.status();
    attachment_ = *std::move(attachment);
    const ksweep::AttachReport report = attachment_->Report();
    if (absl::GetFlag(FLAGS_verbose)) {
      WriteErr(AttachedText(*attachment_));
    } else if (!report.refused.empty()) {
      WriteErr(report.ToString());
    }
    return absl::OkStatus();
  }

  absl::Status Update(const ksweep::Resolution& resolution) {
    ksweep::UpdateOptions options;
    options.max_slots = absl::GetFlag(FLAGS_max_slots);
    const absl::StatusOr<ksweep::UpdateReport> report =
        attachment_->Update(resolution, options);
    if (!report.ok()) return report.status();
    if (absl::GetFlag(FLAGS_verbose) || !report->refused.empty()) {
      WriteErr(report->ToString());
    }
    return absl::OkStatus();
  }

  absl::Status Release(const std::string& module, std::string_view why) {
    if (!attachment_.has_value()) {
      return absl::NotFoundError("nothing is attached");
    }
    const AttachedCounts before = Attached();
    const absl::Status status = attachment_->Release(module).status();
    return status.ok() ? SayChanges(before, why) : status;
  }

  AttachedCounts Attached() const {
    return attachment_.has_value() ? CountByModule(*attachment_)
                                   : AttachedCounts();
  }

  absl::Status SayChanges(const AttachedCounts& before, std::string_view why) {
    if (Say(ChangeLines(before, Attached(), why))) return absl::OkStatus();
    return absl::CancelledError("stopped, as the output cannot be written");
  }

  Query query_;
  Progress progress_;
  CallCounter counter_;
  ksweep::ModuleWatch watch_;
  std::optional<ksweep::Attachment> attachment_;
  SlotOwners owners_;
  std::set<std::string> held_back_;
  size_t waiting_ = 0;
  uint64_t polls_ = 0;
  uint64_t sweeps_ = 0;
};

// False for the command that ends. What goes wrong is said and no failure.
bool Obey(const std::string& line, Watcher& watcher) {
  constexpr std::string_view kRelease = "release ";
  if (line == "quit") return false;
  if (line.rfind(kRelease, 0) == 0) {
    const absl::Status status =
        watcher.ReleaseForNow(line.substr(kRelease.size()));
    if (!status.ok()) PrintError(status);
  } else if (!line.empty()) {
    PrintMessage("there are two commands, release MODULE and quit");
  }
  return true;
}

// Waits for the next poll and does what is asked meanwhile. False at the end.
bool WaitForPoll(Clock::time_point until, InputLines& input, Watcher& watcher) {
  while (true) {
    const double left =
        std::chrono::duration<double>(until - Clock::now()).count();
    switch (WaitForEndOrInput(std::max(0.0, left), input.fd())) {
      case Woken::kTime:
        return true;
      case Woken::kSignal:
        return false;
      case Woken::kInput:
        break;
    }
    for (const std::string& line : input.Read()) {
      if (!Obey(line, watcher)) return false;
    }
  }
}

// Until the end of --duration, Ctrl-C, or the command. Returns the last
// failure: what could not be attached may be possible after the next change.
absl::Status Watch(Clock::time_point start, Watcher& watcher) {
  const auto seconds = [](double number) {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(number));
  };
  const double duration = absl::GetFlag(FLAGS_duration);
  const Clock::time_point end =
      duration > 0 ? start + seconds(duration) : Clock::time_point::max();
  InputLines input(STDIN_FILENO);
  absl::Status last;
  while (Clock::now() < end) {
    const Clock::time_point next =
        Clock::now() + seconds(absl::GetFlag(FLAGS_interval));
    if (!WaitForPoll(std::min(next, end), input, watcher)) break;
    const absl::Status status = watcher.Poll();
    if (status.ok()) continue;
    last = status;
    if (absl::IsCancelled(status)) break;
    PrintError(status);
  }
  return last;
}

int Run(Query query, Kind kind) {
  absl::StatusOr<CallCounter> counter =
      CallCounter::Load(kind, absl::GetFlag(FLAGS_max_slots));
  if (!counter.ok()) return FailedToAttach(counter.status());
  HoldEndSignals();
  const Clock::time_point start = Clock::now();
  Watcher watcher(std::move(query), *std::move(counter));
  if (absl::Status status = watcher.Start(); !status.ok()) {
    return FailedToAttach(status);
  }
  if (!Say(WatchingText(watcher.waiting()))) return kExitFailed;
  const absl::Status watched = Watch(start, watcher);
  absl::StatusOr<WatchResult> result = watcher.Finish();
  if (!result.ok()) {
    PrintError(result.status());
    return kExitFailed;
  }
  result->seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const bool written = WriteOut(absl::GetFlag(FLAGS_json)
                                    ? WatchJson(watcher.owners(), *result)
                                    : WatchText(watcher.owners(), *result));
  return written && watched.ok() ? kExitOk : kExitFailed;
}

absl::Status CheckFlags() {
  absl::Status status = CheckTimes();
  if (!status.ok()) return status;
  if (absl::GetFlag(FLAGS_interval) == 0) {
    return absl::InvalidArgumentError(
        "--interval=0: not a time to wait between looks, such as 0.5");
  }
  if (absl::GetFlag(FLAGS_max_slots) == 0) {
    return absl::InvalidArgumentError("--max_slots=0: leaves no function");
  }
  return absl::OkStatus();
}

int Main(const std::vector<std::string>& requests) {
  const absl::Status status = CheckFlags();
  absl::StatusOr<Query> query =
      status.ok() ? ReadQuery(requests) : absl::StatusOr<Query>(status);
  const absl::StatusOr<Kind> kind = ReadCounterKind();
  if (!query.ok() || !kind.ok()) {
    return WrongUsage(query.ok() ? kind.status() : query.status());
  }
  ShowLibbpfMessages(absl::GetFlag(FLAGS_verbose));
  return Run(*std::move(query), *kind);
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  absl::SetFlag(&FLAGS_duration, 0);
  absl::SetFlag(&FLAGS_interval, 1);
  return examples::Main(
      examples::ParseFlagsOrExit(argc, argv, "watcher", examples::kUsage));
}
