#include "selftests/bench/attach/libbpf_patterns.h"

#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "lib/base/clock.h"
#include "lib/base/errno_status.h"
#include "selftests/bench/attach/program.h"
#include "selftests/bench/attach/timing.h"

namespace ksweep::bench {
namespace {

constexpr const char* kPatterns[] = {"*", "vfs_*"};

// It reads the kernel's lists itself, so that attaching is all of it.
struct LibbpfResult {
  int err = 0;
  uint64_t in_link = 0;
  int64_t attach_ns = 0;
  int64_t detach_ns = 0;
};

absl::StatusOr<LibbpfResult> Measure(const char* pattern,
                                     const Amount& amount) {
  absl::StatusOr<Nothing> nothing = Nothing::Load(Kind::kKprobeMulti);
  if (!nothing.ok()) return nothing.status();
  Settle(amount);
  LibbpfResult result;
  int64_t start = NowNs();
  bpf_link* link =
      bpf_program__attach_kprobe_multi_opts(nothing->prog(), pattern, nullptr);
  result.err = link == nullptr ? errno : 0;
  result.attach_ns = NowNs() - start;
  if (link == nullptr) return result;
  result.in_link = AskForCount(bpf_link__fd(link));
  start = NowNs();
  bpf_link__destroy(link);
  result.detach_ns = NowNs() - start;
  return result;
}

std::string Text(const char* pattern, const LibbpfResult& result) {
  const std::string what = absl::StrFormat(
      "libbpf %s, pattern '%s':", libbpf_version_string(), pattern);
  if (result.err != 0) {
    return absl::StrFormat("%s\n  refused after %.3f s: %s (errno %d)", what,
                           Seconds(result.attach_ns), ErrnoText(result.err),
                           result.err);
  }
  return absl::StrFormat(
      "%s\n  found %d functions\n"
      "  resolved and attached in %.3f s / detached in %.3f s",
      what, result.in_link, Seconds(result.attach_ns),
      Seconds(result.detach_ns));
}

std::string Json(const char* pattern, const LibbpfResult& result) {
  return absl::StrFormat(
      R"({"pattern": "%s", "errno": %d, "in_link": %d, "attach_ns": %d, )"
      R"("detach_ns": %d})",
      pattern, result.err, result.in_link, result.attach_ns, result.detach_ns);
}

}  // namespace

bool MeasureLibbpfPatterns(const Amount& amount, Report* report) {
  // Its complaints about a refusal; the errno is reported.
  libbpf_set_print(nullptr);
  report->Begin("patterns");
  bool ok = true;
  for (const char* pattern : kPatterns) {
    const absl::StatusOr<LibbpfResult> result = Measure(pattern, amount);
    if (result.ok()) {
      report->Add(Text(pattern, *result), Json(pattern, *result));
    } else {
      ok = Fail(pattern, result.status());
    }
  }
  return ok;
}

}  // namespace ksweep::bench
