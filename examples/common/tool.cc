#include "common/tool.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "common/bpf_errors.h"
#include "common/end_signals.h"
#include "common/left_outs.h"
#include "common/output.h"
#include "common/table.h"

ABSL_FLAG(double, duration, 5,
          "seconds to run, such as 0.5; Ctrl-C ends it earlier");
ABSL_FLAG(double, interval, 0,
          "also print what came in each such time, in seconds; 0: only the end "
          "(also: -i)");
ABSL_FLAG(uint32_t, pid, 0, "only calls of this process; 0: all (also: -p)");

namespace examples {
namespace {

// Why Resolve() can fail: the running kernel does not show its lists.
bool ListsMissing(const absl::Status& status) {
  return absl::GetFlag(FLAGS_root) == "/" &&
         (absl::IsNotFound(status) || absl::IsPermissionDenied(status));
}

absl::Status CheckTime(std::string_view flag, double seconds) {
  if (seconds >= 0 && seconds <= 1e9) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "--%s=%g: not a number of seconds from 0 to 1e9", flag, seconds));
}

bool NotRoot() { return geteuid() != 0 && absl::GetFlag(FLAGS_root) == "/"; }

void SayWhatIsMissing(const ksweep::Resolution& resolution) {
  std::string text;
  AppendLeftOuts(resolution, absl::GetFlag(FLAGS_verbose), &text);
  AppendNotes(resolution.stats(), &text);
  WriteErr(text);
  PrintMessage(NotRoot() ? "no function to attach to: permission denied, the "
                           "kernel shows its lists to root only; run this as "
                           "root"
                         : "no function to attach to");
}

}  // namespace

absl::Status CheckTimes() {
  absl::Status status = CheckTime("duration", absl::GetFlag(FLAGS_duration));
  if (!status.ok()) return status;
  return CheckTime("interval", absl::GetFlag(FLAGS_interval));
}

int FailedToAttach(const absl::Status& status) {
  PrintError(status);
  return KernelCannotAttach(status) ? kExitCannotAttach : kExitFailed;
}

ksweep::Resolution ResolveOrExit(Query query, Progress& progress) {
  progress.Show("resolving");
  absl::StatusOr<ksweep::Resolution> resolution =
      ksweep::Resolve(std::move(query.requests), query.files, query.options);
  progress.Clear();
  if (absl::Status status = CheckResolution(resolution); !status.ok()) {
    PrintError(status);
    std::exit(!resolution.ok() && ListsMissing(status) ? kExitCannotAttach
                                                       : kExitFailed);
  }
  if (resolution->targets().empty()) {
    SayWhatIsMissing(*resolution);
    std::exit(NotRoot() ? kExitCannotAttach : kExitFailed);
  }
  return *std::move(resolution);
}

ksweep::AttachOptions OptionsWithProgress(Progress& progress) {
  ksweep::AttachOptions options;
  options.on_refused = ksweep::OnRefused::kSkip;
  options.progress = [&progress](uint64_t done, uint64_t total) {
    progress.Show(absl::StrFormat("attaching, %s of %s", WithCommas(done),
                                  Count(total, "function")));
    return !EndSignalPending();
  };
  return options;
}

std::string AttachedText(const ksweep::Attachment& attachment) {
  const ksweep::AttachReport report = attachment.Report();
  std::string text = absl::StrFormat(
      "attached %d functions in %d links (resolved in %s, attached in %s)\n",
      report.attached, report.links, Milliseconds(report.resolve_ns),
      Milliseconds(report.attach_ns));
  const ksweep::Resolution& resolution = attachment.resolution();
  const size_t omissions = resolution.omissions().size();
  const size_t unmatched = resolution.unmatched().size();
  if (absl::GetFlag(FLAGS_verbose)) {
    text += report.ToString();
    AppendLeftOuts(resolution, true, &text);
  } else if (omissions + unmatched + report.refused.size() > 0) {
    const std::string refused =
        report.refused.empty()
            ? ""
            : WithCommas(report.refused.size()) + " refused by the kernel, ";
    absl::StrAppendFormat(
        &text, "%s%s left out, %s without a target (--verbose lists them)\n",
        refused, WithCommas(omissions), Count(unmatched, "request"));
  }
  return text;
}

absl::Status AnnounceAttached(const ksweep::Attachment& attachment) {
  const std::string text = AttachedText(attachment);
  std::string notes;
  AppendNotes(attachment.resolution().stats(), &notes);
  WriteErr(notes);
  if (absl::GetFlag(FLAGS_json)) {
    WriteErr(text);
  } else if (!WriteOut(text)) {
    return absl::CancelledError("stopped, as the result cannot be written");
  }
  return absl::OkStatus();
}

const ksweep::Target& TargetOfSlot(const ksweep::Attachment& attachment,
                                   uint32_t slot) {
  return attachment.resolution().targets()[attachment.targets()[slot]];
}

absl::StatusOr<Missed> ReadMissed(
    const ksweep::Attachment& attachment,
    absl::Span<const ksweep::KindProgram> programs) {
  const absl::StatusOr<ksweep::LinkStats> stats = attachment.ReadStats();
  if (!stats.ok()) return stats.status();
  Missed missed{.by_link = stats->missed};
  for (const ksweep::KindProgram& program : programs) {
    bpf_prog_info info = {};
    uint32_t size = sizeof(info);
    const int fd = bpf_program__fd(program.prog);
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0) {
      missed.by_prog += info.recursion_misses;
    }
  }
  return missed;
}

Missed operator-(const Missed& a, const Missed& b) {
  return {.by_link = a.by_link - b.by_link, .by_prog = a.by_prog - b.by_prog};
}

std::string MissedText(const Missed& missed, std::string_view noun) {
  return absl::StrFormat(
      "missed %s: %s by ftrace's recursion guard, %s while a BPF program ran\n",
      Count(missed.total(), noun), WithCommas(missed.by_link),
      WithCommas(missed.by_prog));
}

void WaitByFlags(Progress& progress, absl::FunctionRef<bool()> at_interval) {
  using Seconds = std::chrono::duration<double>;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const double duration = absl::GetFlag(FLAGS_duration);
  const double interval = absl::GetFlag(FLAGS_interval);
  for (double step = 1; interval > 0 && step * interval < duration; ++step) {
    const double passed = Seconds(Clock::now() - start).count();
    if (WaitForEnd(std::max(0.0, step * interval - passed), progress)) return;
    progress.Clear();
    if (!at_interval()) return;
  }
  const double passed = Seconds(Clock::now() - start).count();
  WaitForEnd(std::max(0.0, duration - passed), progress);
}

}  // namespace examples
