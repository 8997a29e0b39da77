#include "selftests/bench/attach/btf.h"

#include <algorithm>
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

constexpr size_t kReads = 5;    // of a look through kallsyms each
constexpr size_t kScans = 100;  // of a look through all names each
constexpr size_t kSingles = 50;

int64_t Scaled(int64_t ns, size_t done, size_t cnt) {
  return static_cast<int64_t>(static_cast<double>(ns) *
                              static_cast<double>(cnt) /
                              static_cast<double>(done));
}

absl::Status NotListed(const Target& target) {
  return absl::NotFoundError("not in kallsyms: " + std::string(target.name));
}

// By one function after the other, each looked for in the text from its first
// line on.
absl::StatusOr<int64_t> TimeReads(const std::vector<Target>& targets) {
  const int64_t start = NowNs();
  for (const Target& target : targets) {
    std::ifstream kallsyms("/proc/kallsyms");
    std::string addr, type, name, rest;
    bool found = false;
    while (!found && kallsyms >> addr >> type >> name) {
      std::getline(kallsyms, rest);
      found = name == target.name;
    }
    if (!found) return NotListed(target);
  }
  return NowNs() - start;
}

std::vector<std::string> ReadNames() {
  std::ifstream kallsyms("/proc/kallsyms");
  std::vector<std::string> names;
  std::string addr, type, name, rest;
  while (kallsyms >> addr >> type >> name) {
    std::getline(kallsyms, rest);
    names.push_back(name);
  }
  return names;
}

// The same in a table of all names, as the kernel did it in 2021, but for its
// compression. Reading the table does not count.
absl::StatusOr<int64_t> TimeScans(const std::vector<Target>& targets,
                                  const std::vector<std::string>& names) {
  const int64_t start = NowNs();
  for (const Target& target : targets) {
    if (std::find(names.begin(), names.end(), target.name) == names.end()) {
      return NotListed(target);
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
  int64_t reads_ns = 0;  // reckoned
  int64_t scans_ns = 0;  // reckoned
  int64_t resolve_ns = 0;
  Timing single;  // reckoned
  Timing multi;   // 0 where the kernel has no tracing_multi links
};

absl::Status MeasureLookups(const std::vector<Target>& targets,
                            const std::vector<std::string>& names, Row* row) {
  const auto read = EvenlySpread(targets, kReads);
  const absl::StatusOr<int64_t> reads_ns = TimeReads(read);
  if (!reads_ns.ok()) return reads_ns.status();
  row->reads_ns = Scaled(*reads_ns, read.size(), row->cnt);
  const auto scanned = EvenlySpread(targets, kScans);
  const absl::StatusOr<int64_t> scans_ns = TimeScans(scanned, names);
  if (!scans_ns.ok()) return scans_ns.status();
  row->scans_ns = Scaled(*scans_ns, scanned.size(), row->cnt);
  return absl::OkStatus();
}

absl::StatusOr<Row> MeasureIds(const std::vector<Target>& targets,
                               const std::vector<std::string>& names,
                               const Amount& amount) {
  Row row;
  row.cnt = targets.size();
  absl::Status status = MeasureLookups(targets, names, &row);
  if (!status.ok()) return status;
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
      "  %6d%10.1f s%10.3f s%10.3f s%10.1f s /%8.1f s", row.cnt,
      Seconds(row.reads_ns), Seconds(row.scans_ns), Seconds(row.resolve_ns),
      Seconds(row.single.attach_ns), Seconds(row.single.detach_ns));
  if (row.multi.links == 0) return text + "         no tracing_multi links";
  return text +
         absl::StrFormat(
             "%10.3f s /%8.3f s%10.0fx%9.0fx", Seconds(row.multi.attach_ns),
             Seconds(row.multi.detach_ns),
             Seconds(row.scans_ns + row.single.attach_ns) / ours,
             Seconds(row.single.attach_ns) / Seconds(row.multi.attach_ns));
}

std::string Json(const Row& row) {
  return absl::StrFormat(
      R"({"ids": %d, "reads_ns": %d, "scans_ns": %d, "resolve_ns": %d, )"
      R"("fentry_attach_ns": %d, "fentry_detach_ns": %d, )"
      R"("multi_links": %d, "multi_attach_ns": %d, "multi_detach_ns": %d})",
      row.cnt, row.reads_ns, row.scans_ns, row.resolve_ns, row.single.attach_ns,
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
      "reckoned from a part: look-ups\nin the text from %d, in a table of all "
      "names from %d, fentry from %d; ratios: look-ups in the table\nand "
      "fentry "
      "to resolve and fentry.multi, fentry to fentry.multi\n"
      "  %6s%12s%12s%12s%24s%24s",
      kReads, kScans, kSingles, "ids", "in text", "in table", "resolve",
      "fentry", "fentry.multi"));
  const std::vector<std::string> names = ReadNames();
  size_t last = 0;
  for (size_t cnt : {size_t{100}, size_t{1000}, size_t{10000}, all.size()}) {
    const std::vector<Target> targets = EvenlySpread(all, cnt);
    if (targets.size() == last) continue;
    last = targets.size();
    const absl::StatusOr<Row> row = MeasureIds(targets, names, amount);
    if (!row.ok()) return Fail("attaching by BTF id", row.status());
    report->Add(Text(*row), Json(*row));
  }
  return true;
}

}  // namespace ksweep::bench
