#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "ksweep/attach.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {

namespace {

constexpr size_t kMaxRefusedLines = 10;

double Ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

std::string Counted(uint64_t cnt, const char* what) {
  return absl::StrFormat("%d %s%s", cnt, what, cnt == 1 ? "" : "s");
}

std::string KindLines(absl::Span<const KindReport> kinds) {
  std::string text;
  for (const KindReport& kind : kinds) {
    absl::StrAppendFormat(&text, "  %s: %s in %s\n", Av(KindName(kind.kind)),
                          Counted(kind.attached, "function"),
                          Counted(kind.links, "link"));
  }
  return text;
}

std::string AbsentLines(absl::Span<const AbsentKind> absent) {
  std::string text;
  for (const AbsentKind& kind : absent) {
    absl::StrAppendFormat(
        &text, "  %s absent, which %s: %s\n", Av(KindName(kind.kind)),
        kind.fitting == 1 ? "1 target fits"
                          : Counted(kind.fitting, "target") + " fit",
        kind.why);
  }
  return text;
}

std::string ThreadLine(const ThreadReport& report) {
  if (report.threads < 2 || report.links == 0) return "";
  std::string text = absl::StrFormat(
      "  %d threads made %s in %.1f ms, %.2f ms each; the fastest took %.2f ms",
      report.threads, Counted(report.links, "link"), Ms(report.wall_ns),
      Ms(report.wall_ns) / static_cast<double>(report.links),
      Ms(report.fastest_ns));
  if (report.Serialized()) {
    return text +
           ": the kernel lets one wait after the other, threads do not help\n";
  }
  return text + "\n";
}

std::string RefusedLines(absl::Span<const RefusedFunction> refused) {
  std::string text;
  for (const RefusedFunction& r :
       refused.subspan(0, std::min(refused.size(), kMaxRefusedLines))) {
    absl::StrAppendFormat(&text, "  refused %s: %s (%s)\n", r.function,
                          r.reason, ErrnoText(r.err));
  }
  if (refused.size() > kMaxRefusedLines) {
    absl::StrAppendFormat(&text, "  … and %d more refused\n",
                          refused.size() - kMaxRefusedLines);
  }
  return text;
}

}  // namespace

double ThreadReport::Gain() const {
  if (links == 0 || wall_ns <= 0) return 0;
  return static_cast<double>(fastest_ns) * static_cast<double>(links) /
         static_cast<double>(wall_ns);
}

bool ThreadReport::Serialized() const {
  constexpr uint64_t kEnoughForEach = 4;
  constexpr double kHelps = 1.5;
  return threads > 1 && links >= kEnoughForEach * threads && Gain() < kHelps;
}

std::string AttachReport::ToString() const {
  std::string text = absl::StrFormat(
      "%s: attached %s in %s, %d refused; %s, %.1f ms\n", Av(KindName(kind)),
      Counted(attached, "function"), Counted(links, "link"), refused.size(),
      Counted(syscalls, "system call"), Ms(attach_ns));
  if (kinds.size() > 1 || !absent.empty()) text += KindLines(kinds);
  text += AbsentLines(absent);
  absl::StrAppendFormat(
      &text, "  resolve %.1f ms, select %.1f ms, attach %.1f ms in all\n",
      Ms(resolve_ns), Ms(select_ns), Ms(total_ns));
  return text + ThreadLine(on_threads) + RefusedLines(refused);
}

std::string UpdateReport::ToString() const {
  std::string text = absl::StrFormat(
      "%s added, %d dropped, %d kept, %d refused; %s made, %d closed; %s, "
      "%.1f ms, %.1f ms in all\n",
      Counted(added, "function"), dropped, kept, refused.size(),
      Counted(links_made, "link"), links_closed,
      Counted(syscalls, "system call"), Ms(attach_ns), Ms(total_ns));
  if (doubled > 0) {
    absl::StrAppendFormat(&text,
                          "  %s of the kept ones attached twice for a moment, "
                          "calls in it were hit twice\n",
                          Counted(doubled, "function"));
  }
  if (interrupted > 0) {
    absl::StrAppendFormat(&text,
                          "  %s of the kept ones not attached for up to %.1f "
                          "ms, calls in it were not hit\n",
                          Counted(interrupted, "function"), Ms(gap_ns));
  }
  return text + RefusedLines(refused);
}

}  // namespace ksweep
