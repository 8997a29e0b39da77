#include "selftests/bench/attach/btf.h"

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "ksweep/attach.h"
#include "ksweep/features.h"
#include "ksweep/resolve.h"
#include "lib/base/clock.h"
#include "selftests/bench/attach/program.h"
#include "selftests/bench/attach/scope.h"
#include "selftests/bench/attach/spread.h"
#include "selftests/bench/attach/timing.h"

namespace ksweep::bench {
namespace {

constexpr size_t kLookups = 5;  // of a look through kallsyms each
constexpr size_t kSingles = 50;

int64_t Scaled(int64_t ns, size_t done, size_t cnt) {
  return static_cast<int64_t>(static_cast<double>(ns) *
                              static_cast<double>(cnt) /
                              static_cast<double>(done));
}

// By one function after the other, each looked for from the first line on.
absl::StatusOr<int64_t> TimeLookups(const std::vector<Target>& targets) {
  const int64_t start = NowNs();
  for (const Target& target : targets) {
    std::ifstream kallsyms("/proc/kallsyms");
    std::string addr, type, name, rest;
    bool found = false;
    while (!found && kallsyms >> addr >> type >> name) {
      std::getline(kallsyms, rest);
      found = name == target.name;
    }
    if (!found) {
      return absl::NotFoundError("not in kallsyms: " +
                                 std::string(target.name));
    }
  }
  return NowNs() - start;
}

absl::StatusOr<Resolution> ResolveIds(const std::vector<Target>& targets,
                                      Kind kind) {
  std::vector<Request> requests;
  for (const Target& target : targets) {
    absl::StatusOr<Request> request =
        Request::Parse(absl::StrFormat("btf:%d", target.btf_id));
    if (!request.ok()) return request.status();
    requests.push_back(*std::move(request));
  }
  ResolveOptions options;
  options.kinds = {kind};
  return Resolve(std::move(requests), KernelFiles(), options);
}

absl::StatusOr<Timing> TimeKind(const Resolution& resolution, Kind kind) {
  absl::StatusOr<Nothing> nothing = Nothing::Load(kind, resolution);
  if (!nothing.ok()) return nothing.status();
  const KindProgram program = {kind, nothing->prog()};
  AttachOptions options;
  options.raise_fd_limit = true;
  return TimeAttach(resolution, {&program, 1}, options);
}

struct Row {
  size_t cnt = 0;
  int64_t lookups_ns = 0;  // reckoned
  int64_t resolve_ns = 0;
  Timing single;  // reckoned
  Timing multi;   // 0 where the kernel has no tracing_multi links
};

absl::StatusOr<Row> MeasureIds(const std::vector<Target>& targets,
                               const Amount& amount) {
  Row row;
  row.cnt = targets.size();
  const auto looked_up = EvenlySpread(targets, kLookups);
  const absl::StatusOr<int64_t> lookups_ns = TimeLookups(looked_up);
  if (!lookups_ns.ok()) return lookups_ns.status();
  row.lookups_ns = Scaled(*lookups_ns, looked_up.size(), row.cnt);

  const int64_t start = NowNs();
  const absl::StatusOr<Resolution> all = ResolveIds(targets, Kind::kFentry);
  row.resolve_ns = NowNs() - start;
  if (!all.ok()) return all.status();

  const auto singles = EvenlySpread(targets, kSingles);
  const absl::StatusOr<Resolution> some = ResolveIds(singles, Kind::kFentry);
  if (!some.ok()) return some.status();
  Settle(amount);
  absl::StatusOr<Timing> single = TimeKind(*some, Kind::kFentry);
  if (!single.ok()) return single.status();
  row.single.attach_ns = Scaled(single->attach_ns, singles.size(), row.cnt);
  row.single.detach_ns = Scaled(single->detach_ns, singles.size(), row.cnt);

  if (Features::Running().Find(Kind::kFentryMulti).support == Support::kNo) {
    return row;
  }
  const absl::StatusOr<Resolution> multi =
      ResolveIds(targets, Kind::kFentryMulti);
  if (!multi.ok()) return multi.status();
  Settle(amount);
  const absl::StatusOr<Timing> timing = TimeKind(*multi, Kind::kFentryMulti);
  if (!timing.ok()) return timing.status();
  row.multi = *timing;
  return row;
}

std::string Text(const Row& row) {
  const double ours = Seconds(row.resolve_ns + row.multi.attach_ns);
  std::string text = absl::StrFormat(
      "  %6d%12.1f s%10.3f s%10.1f s /%8.1f s", row.cnt,
      Seconds(row.lookups_ns), Seconds(row.resolve_ns),
      Seconds(row.single.attach_ns), Seconds(row.single.detach_ns));
  if (row.multi.links == 0) return text + "         no tracing_multi links";
  return text +
         absl::StrFormat(
             "%10.3f s /%8.3f s%10.0fx%9.0fx", Seconds(row.multi.attach_ns),
             Seconds(row.multi.detach_ns),
             Seconds(row.lookups_ns + row.single.attach_ns) / ours,
             Seconds(row.single.attach_ns) / Seconds(row.multi.attach_ns));
}

std::string Json(const Row& row) {
  return absl::StrFormat(
      R"({"ids": %d, "lookups_ns": %d, "resolve_ns": %d, )"
      R"("fentry_attach_ns": %d, "fentry_detach_ns": %d, )"
      R"("multi_links": %d, "multi_attach_ns": %d, "multi_detach_ns": %d})",
      row.cnt, row.lookups_ns, row.resolve_ns, row.single.attach_ns,
      row.single.detach_ns, row.multi.links, row.multi.attach_ns,
      row.multi.detach_ns);
}

}  // namespace

bool MeasureBtf(const Amount& amount, Report* report) {
  // What fits both kinds, so that all rows are about the same functions.
  const absl::StatusOr<Resolution> core =
      ResolveScope(Scope::kCore, {Kind::kFentryMulti, Kind::kFentry}, amount);
  if (!core.ok()) return Fail("functions with BTF", core.status());
  std::vector<Target> all;
  for (const Target& target : core->targets()) {
    if (target.kinds.Has(Kind::kFentry) &&
        target.kinds.Has(Kind::kFentryMulti)) {
      all.push_back(target);
    }
  }
  report->Begin("btf");
  report->AddHeading(absl::StrFormat(
      "functions of the core kernel by BTF id; for each kind attach / detach; "
      "look-ups and fentry\nare reckoned from %d and %d; ratios: look-ups and "
      "fentry to resolve and fentry.multi, fentry to fentry.multi\n"
      "  %6s%14s%12s%24s%24s",
      kLookups, kSingles, "ids", "look-ups", "resolve", "fentry",
      "fentry.multi"));
  size_t last = 0;
  for (size_t cnt : {size_t{100}, size_t{1000}, size_t{10000}, all.size()}) {
    const std::vector<Target> targets = EvenlySpread(all, cnt);
    if (targets.size() == last) continue;
    last = targets.size();
    const absl::StatusOr<Row> row = MeasureIds(targets, amount);
    if (!row.ok()) return Fail("attaching by BTF id", row.status());
    report->Add(Text(*row), Json(*row));
  }
  return true;
}

}  // namespace ksweep::bench
