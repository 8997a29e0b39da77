#include "selftests/bench/attach/runs.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "ksweep/attach.h"
#include "ksweep/resolve.h"
#include "lib/base/abseil.h"
#include "lib/base/clock.h"
#include "selftests/bench/attach/kinds.h"
#include "selftests/bench/attach/program.h"
#include "selftests/bench/attach/raw_link.h"
#include "selftests/bench/attach/scope.h"
#include "selftests/bench/attach/timing.h"

namespace ksweep::bench {
namespace {

struct Run {
  Scope scope = Scope::kAll;
  bool by_name = false;
  Kinds kinds = kEntry;
};

// The first four are those of the kernel's selftests.
constexpr Run kRuns[] = {
    {Scope::kCore, true, kEntry},   {Scope::kModules, true, kEntry},
    {Scope::kCore, false, kEntry},  {Scope::kModules, false, kEntry},
    {Scope::kAll, false, kEntry},   {Scope::kAll, false, kReturn},
    {Scope::kAll, false, kSession}, {Scope::kAll, false, kPair},
};

struct Result {
  uint64_t targets = 0;
  int64_t resolve_ns = 0;
  Timing timing;  // of fewer functions than targets if by name
};

absl::StatusOr<Timing> AttachByAddress(const Resolution& resolution,
                                       Kinds kinds, const bpf_program* prog) {
  absl::StatusOr<Timing> timing =
      TimeAttach(resolution, ProgramsFor(kinds, prog), {});
  if (!timing.ok()) return timing;
  if (timing->links != kinds.size()) {
    return absl::InternalError(absl::StrFormat(
        "attached by %d links instead of %d", timing->links, kinds.size()));
  }
  if (timing->functions != resolution.targets().size()) {
    return absl::InternalError(absl::StrFormat("attached to %d of %d functions",
                                               timing->functions,
                                               resolution.targets().size()));
  }
  return timing;
}

// Each name once, whatever has it: given twice, the kernel finds neither.
std::vector<std::string_view> DistinctNames(const Resolution& resolution) {
  absl::flat_hash_set<std::string_view> seen;
  std::vector<std::string_view> names;
  for (const Target& target : resolution.targets()) {
    if (seen.insert(target.name).second) names.push_back(target.name);
  }
  return names;
}

absl::StatusOr<Timing> AttachByName(const Resolution& resolution, Kind kind,
                                    const bpf_program* prog) {
  const std::vector<std::string_view> names = DistinctNames(resolution);
  absl::StatusOr<Timing> timing =
      TimeLinks(1, [&](size_t) { return LinkByName(prog, kind, names); });
  if (timing.ok()) timing->functions = names.size();
  return timing;
}

absl::StatusOr<Timing> AttachOnce(const Run& run, const Resolution& resolution,
                                  const bpf_program* prog) {
  absl::StatusOr<Timing> timing =
      run.by_name ? AttachByName(resolution, run.kinds.front(), prog)
                  : AttachByAddress(resolution, run.kinds, prog);
  if (!timing.ok()) return timing;
  const absl::Status status =
      CheckKernelCount(*timing, timing->functions * run.kinds.size());
  if (!status.ok()) return status;
  return timing;
}

absl::StatusOr<Result> Measure(const Run& run, const ListCounts& list,
                               const Amount& amount) {
  absl::StatusOr<Nothing> nothing = Nothing::Load(run.kinds.front());
  if (!nothing.ok()) return nothing.status();
  Settle(amount);
  Result result;
  const int64_t start = NowNs();
  absl::StatusOr<Resolution> resolution =
      ResolveScope(run.scope, SetOf(run.kinds), amount);
  result.resolve_ns = NowNs() - start;
  if (!resolution.ok()) return resolution.status();
  result.targets = resolution->targets().size();
  const absl::Status status = CheckTargets(*resolution, list);
  if (!status.ok()) return status;
  absl::StatusOr<Timing> timing = AttachOnce(run, *resolution, nothing->prog());
  if (!timing.ok()) return timing.status();
  result.timing = *timing;
  return result;
}

const char* By(const Run& run) { return run.by_name ? "name" : "address"; }

std::string Label(const Run& run) {
  return absl::StrFormat("%s, %s, by %s", KindsText(run.kinds),
                         Av(ScopeName(run.scope)), By(run));
}

std::string FoundText(const Run& run, const ListCounts& list,
                      const Result& result) {
  if (run.by_name) {
    return absl::StrFormat("%d names of %d functions", result.timing.functions,
                           result.targets);
  }
  return absl::StrFormat("%d functions (%s)", result.timing.functions,
                         ListText(list));
}

std::string Text(const Run& run, const ListCounts& list, const Result& result) {
  return absl::StrFormat(
      "%s:\n"
      "  found %s\n"
      "  resolved in %.3f s / attached in %.3f s / detached in %.3f s",
      Label(run), FoundText(run, list, result), Seconds(result.resolve_ns),
      Seconds(result.timing.attach_ns), Seconds(result.timing.detach_ns));
}

std::string Json(const Run& run, const ListCounts& list, const Result& result) {
  const Timing& timing = result.timing;
  return absl::StrFormat(
      R"({"kind": "%s", "scope": "%s", "by": "%s", "listed": %d, )"
      R"("placeholders": %d, "denied": %d, "targets": %d, "functions": %d, )"
      R"("in_links": %d, "resolve_ns": %d, "attach_ns": %d, "detach_ns": %d})",
      KindsText(run.kinds), Av(ScopeName(run.scope)), By(run), list.lines,
      list.placeholders, list.denied, result.targets, timing.functions,
      timing.in_links, result.resolve_ns, timing.attach_ns, timing.detach_ns);
}

bool MeasureAndReport(const Run& run, const ListCounts& list,
                      const Amount& amount, Report* report) {
  if (list.wanted() == 0) return true;  // no module is loaded
  const absl::StatusOr<Result> result = Measure(run, list, amount);
  if (!result.ok()) return Fail(Label(run), result.status());
  report->Add(Text(run, list, *result), Json(run, list, *result));
  return true;
}

}  // namespace

bool MeasureRuns(const Amount& amount, Report* report) {
  const absl::StatusOr<FilterList> list = CountFilterList(amount);
  if (!list.ok()) return Fail("what the kernel offers", list.status());
  report->Begin("runs");
  bool ok = true;
  for (const Run& run : kRuns) {
    ok &= MeasureAndReport(run, list->Of(run.scope), amount, report);
  }
  return ok;
}

}  // namespace ksweep::bench
