#include "selftests/bench/attach/separate_links.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "ksweep/kernel_files.h"
#include "ksweep/request.h"
#include "ksweep/resolve.h"
#include "lib/base/abseil.h"
#include "lib/base/clock.h"
#include "selftests/bench/attach/kinds.h"
#include "selftests/bench/attach/program.h"
#include "selftests/bench/attach/raw_link.h"
#include "selftests/bench/attach/scope.h"
#include "selftests/bench/attach/spread.h"
#include "selftests/bench/attach/timing.h"

namespace ksweep::bench {
namespace {

constexpr Kind kKind = Kind::kKprobeSession;

struct Row {
  std::string_view label;
  int64_t resolve_ns = 0;
  Timing timing;

  int64_t total_ns() const { return resolve_ns + timing.attach_ns; }
};

// Names that only one function of the core kernel has, so that by name and by
// address is the same.
absl::StatusOr<std::vector<std::string>> ChooseNames(const Amount& amount) {
  const absl::StatusOr<Resolution> core =
      ResolveScope(Scope::kCore, {kKind}, amount);
  if (!core.ok()) return core.status();
  absl::flat_hash_map<std::string_view, int> cnt;
  for (const Target& target : core->targets()) ++cnt[target.name];
  for (const Omission& omission : core->omissions()) ++cnt[omission.name];
  std::vector<std::string> names;
  for (const Target& target : core->targets()) {
    if (cnt[target.name] == 1) names.emplace_back(target.name);
  }
  return EvenlySpread(names, amount.separate_links);
}

absl::StatusOr<Row> ByName(const std::vector<std::string>& names,
                           const bpf_program* prog) {
  absl::StatusOr<Timing> timing = TimeLinks(names.size(), [&](size_t i) {
    const std::string_view name = names[i];
    return LinkByName(prog, kKind, {&name, 1});
  });
  if (!timing.ok()) return timing.status();
  return Row{"by name", 0, *timing};
}

absl::StatusOr<Resolution> ResolveAtOnce(
    const std::vector<std::string>& names) {
  std::vector<Request> requests;
  for (const std::string& name : names) {
    requests.push_back(Request::Exact(name, Owner::Core()));
  }
  ResolveOptions options;
  options.kinds = {kKind};
  return Resolve(std::move(requests), KernelFiles(), options);
}

absl::Status CheckOneSweep(const Resolution& resolution) {
  bool swept = false;
  for (const FileStats& file : resolution.stats().files) {
    if (file.passes > 1) {
      return absl::InternalError(absl::StrFormat(
          "%s was read %d times for one resolve", file.path, file.passes));
    }
    swept |=
        file.path == KernelFilePath(KernelFile::kKallsyms) && file.passes == 1;
  }
  return swept ? absl::OkStatus()
               : absl::InternalError("resolved without kallsyms");
}

// The function of each request.
absl::StatusOr<std::vector<uint64_t>> AddressesOf(
    const Resolution& resolution) {
  std::vector<uint64_t> addrs;
  for (size_t i = 0; i < resolution.requests().size(); ++i) {
    const std::vector<uint32_t> targets = resolution.ForRequest(i);
    if (targets.size() != 1) {
      return absl::InternalError(
          absl::StrFormat("%s has %d functions",
                          resolution.requests()[i].ToString(), targets.size()));
    }
    addrs.push_back(resolution.targets()[targets.front()].addr);
  }
  return addrs;
}

absl::StatusOr<Row> ByAddress(const std::vector<std::string>& names,
                              const bpf_program* prog) {
  const int64_t start = NowNs();
  const absl::StatusOr<Resolution> resolution = ResolveAtOnce(names);
  if (!resolution.ok()) return resolution.status();
  const absl::StatusOr<std::vector<uint64_t>> addrs = AddressesOf(*resolution);
  const int64_t resolve_ns = NowNs() - start;
  if (!addrs.ok()) return addrs.status();
  const absl::Status status = CheckOneSweep(*resolution);
  if (!status.ok()) return status;
  absl::StatusOr<Timing> timing = TimeLinks(addrs->size(), [&](size_t i) {
    return LinkByAddress(prog, kKind, (*addrs)[i]);
  });
  if (!timing.ok()) return timing.status();
  return Row{"by address, one resolve", resolve_ns, *timing};
}

// What it costs where separate links are not needed.
absl::StatusOr<Row> InOneLink(const std::vector<std::string>& names,
                              const bpf_program* prog) {
  const int64_t start = NowNs();
  const absl::StatusOr<Resolution> resolution = ResolveAtOnce(names);
  const int64_t resolve_ns = NowNs() - start;
  if (!resolution.ok()) return resolution.status();
  const absl::StatusOr<Timing> timing =
      TimeAttach(*resolution, ProgramsFor(kSession, prog), {});
  if (!timing.ok()) return timing.status();
  return Row{"all in one link", resolve_ns, *timing};
}

using Measure = absl::StatusOr<Row> (*)(const std::vector<std::string>& names,
                                        const bpf_program* prog);

absl::StatusOr<Row> MeasureOnce(Measure measure,
                                const std::vector<std::string>& names,
                                const Amount& amount) {
  absl::StatusOr<Nothing> nothing = Nothing::Load(kKind);
  if (!nothing.ok()) return nothing.status();
  Settle(amount);
  absl::StatusOr<Row> row = measure(names, nothing->prog());
  if (!row.ok()) return row;
  const absl::Status status = CheckKernelCount(row->timing, names.size());
  if (!status.ok()) return status;
  return row;
}

double MillisecondsEach(const Row& row) {
  return static_cast<double>(row.timing.attach_ns) / 1e6 /
         static_cast<double>(row.timing.links);
}

std::string Heading(const std::vector<std::string>& names) {
  return absl::StrFormat(
      "%d functions of the core kernel, %s:\n"
      "%-28s%6s%12s%12s%13s%12s%21s",
      names.size(), Av(KindName(kKind)), "", "links", "resolve", "attach",
      "per link", "in all", "detach");
}

std::string Text(const Row& row, const Row& by_name) {
  return absl::StrFormat(
      "  %-26s%6d%10.3f s%10.3f s%10.2f ms%10.3f s%8.2fx%10.3f s",
      Av(row.label), row.timing.links, Seconds(row.resolve_ns),
      Seconds(row.timing.attach_ns), MillisecondsEach(row),
      Seconds(row.total_ns()),
      static_cast<double>(row.total_ns()) /
          static_cast<double>(by_name.total_ns()),
      Seconds(row.timing.detach_ns));
}

std::string Json(const Row& row) {
  return absl::StrFormat(
      R"({"way": "%s", "links": %d, "resolve_ns": %d, "attach_ns": %d, )"
      R"("detach_ns": %d})",
      Av(row.label), row.timing.links, row.resolve_ns, row.timing.attach_ns,
      row.timing.detach_ns);
}

}  // namespace

bool MeasureSeparateLinks(const Amount& amount, Report* report) {
  const absl::StatusOr<std::vector<std::string>> names = ChooseNames(amount);
  if (!names.ok()) return Fail("functions for links", names.status());
  report->Begin("separate_links");
  report->AddHeading(Heading(*names));
  Row by_name;
  for (const Measure measure : {ByName, ByAddress, InOneLink}) {
    const absl::StatusOr<Row> row = MeasureOnce(measure, *names, amount);
    if (!row.ok()) return Fail("separate links", row.status());
    if (measure == ByName) by_name = *row;
    report->Add(Text(*row, by_name), Json(*row));
  }
  return true;
}

}  // namespace ksweep::bench
