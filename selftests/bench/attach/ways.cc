#include "selftests/bench/attach/ways.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "ksweep/attach.h"
#include "ksweep/kernel_files.h"
#include "ksweep/request.h"
#include "ksweep/resolve.h"
#include "selftests/bench/attach/kinds.h"
#include "selftests/bench/attach/program.h"
#include "selftests/bench/attach/scope.h"
#include "selftests/bench/attach/spread.h"
#include "selftests/bench/attach/timing.h"

namespace ksweep::bench {
namespace {

enum class Form : uint8_t { kOneLink, kBatches, kSingle };

struct Way {
  Kinds kinds;
  Form form = Form::kOneLink;
};

// What follows a way in one link has its ratios to it.
constexpr Way kWays[] = {
    {kEntry, Form::kOneLink},      {kEntry, Form::kBatches},
    {kSingleEntry, Form::kSingle}, {kReturn, Form::kOneLink},
    {kReturn, Form::kBatches},     {kSingleReturn, Form::kSingle},
    {kSession, Form::kOneLink},    {kSession, Form::kBatches},
    {kPair, Form::kOneLink},       {kPair, Form::kBatches},
};

// What the ways attach to.
struct Functions {
  Resolution all;
  Resolution some;  // of them, for the ways that attach one by one

  const Resolution& Of(Form form) const {
    return form == Form::kSingle ? some : all;
  }
};

// Functions of fprobe kinds that a perf kprobe can have as well.
absl::StatusOr<Resolution> ResolveSome(const Amount& amount) {
  absl::StatusOr<Resolution> all = ResolveScope(
      Scope::kCore, {Kind::kKprobeMulti, Kind::kKprobe, Kind::kKretprobe},
      amount);
  if (!all.ok()) return all.status();
  std::vector<Request> requests;
  for (const Target& target : all->targets()) {
    if (target.misfits.empty()) {
      requests.push_back(Request::Address(target.addr));
    }
  }
  ResolveOptions options;
  options.kinds = {Kind::kKprobe, Kind::kKretprobe};
  return Resolve(EvenlySpread(requests, amount.single), KernelFiles(), options);
}

absl::StatusOr<Functions> FindFunctions(const Amount& amount) {
  const absl::StatusOr<FilterList> list = CountFilterList(amount);
  if (!list.ok()) return list.status();
  absl::StatusOr<Resolution> all = ResolveScope(
      Scope::kCore,
      {Kind::kKprobeMulti, Kind::kKretprobeMulti, Kind::kKprobeSession},
      amount);
  if (!all.ok()) return all.status();
  const absl::Status status = CheckTargets(*all, list->core);
  if (!status.ok()) return status;
  absl::StatusOr<Resolution> some = ResolveSome(amount);
  if (!some.ok()) return some.status();
  return Functions{*std::move(all), *std::move(some)};
}

AttachOptions OptionsFor(Form form, const Amount& amount) {
  AttachOptions options;
  if (form == Form::kBatches) options.max_per_link = amount.batch;
  options.max_single = amount.single;
  options.raise_fd_limit = true;
  return options;
}

uint64_t LinksFor(Form form, uint64_t functions, const Amount& amount) {
  switch (form) {
    case Form::kOneLink:
      return 1;
    case Form::kBatches:
      return (functions + amount.batch - 1) / amount.batch;
    case Form::kSingle:
      break;
  }
  return functions;
}

absl::Status CheckTiming(const Way& way, const Resolution& resolution,
                         const Amount& amount, const Timing& timing) {
  const uint64_t functions = resolution.targets().size();
  const uint64_t links =
      LinksFor(way.form, functions, amount) * way.kinds.size();
  if (timing.functions != functions || timing.links != links) {
    return absl::InternalError(absl::StrFormat(
        "attached to %d of %d functions by %d links instead of %d",
        timing.functions, functions, timing.links, links));
  }
  return CheckKernelCount(timing, functions * way.kinds.size());
}

absl::StatusOr<Timing> Measure(const Way& way, const Resolution& resolution,
                               const Amount& amount) {
  absl::StatusOr<Nothing> nothing = Nothing::Load(way.kinds.front());
  if (!nothing.ok()) return nothing.status();
  Settle(amount);
  absl::StatusOr<Timing> timing =
      TimeAttach(resolution, ProgramsFor(way.kinds, nothing->prog()),
                 OptionsFor(way.form, amount));
  if (!timing.ok()) return timing;
  const absl::Status status = CheckTiming(way, resolution, amount, *timing);
  if (!status.ok()) return status;
  return timing;
}

// What one function after the other takes for `functions`.
Timing Scaled(const Timing& timing, uint64_t functions) {
  const double factor =
      static_cast<double>(functions) / static_cast<double>(timing.functions);
  const auto scale = [factor](int64_t ns) {
    return static_cast<int64_t>(static_cast<double>(ns) * factor);
  };
  Timing scaled;
  scaled.links = functions;
  scaled.functions = functions;
  scaled.attach_ns = scale(timing.attach_ns);
  scaled.detach_ns = scale(timing.detach_ns);
  return scaled;
}

struct Row {
  std::string kinds;
  std::string form;
  uint64_t measured = 0;  // functions
  Timing timing;          // of all, reckoned if fewer were measured
  Timing one_link;        // what the ratios are to
};

std::string FormText(const Way& way, const Amount& amount) {
  switch (way.form) {
    case Form::kOneLink:
      return way.kinds.size() == 1 ? "one link" : "one link each";
    case Form::kBatches:
      return absl::StrFormat("links of %d", amount.batch);
    case Form::kSingle:
      break;
  }
  return absl::StrFormat("singly, from %d", amount.single);
}

double Ratio(int64_t ns, int64_t base_ns) {
  return static_cast<double>(ns) / static_cast<double>(base_ns);
}

std::string Heading(const Resolution& all) {
  return absl::StrFormat("%d functions, core, by address:\n%-54s%7s%13s%19s",
                         all.targets().size(), "", "links", "attach", "detach");
}

std::string Text(const Row& row) {
  const Timing& timing = row.timing;
  return absl::StrFormat("  %-34s%-18s%7d%11.3f s%7.1fx%9.3f s%7.1fx",
                         row.kinds, row.form, timing.links,
                         Seconds(timing.attach_ns),
                         Ratio(timing.attach_ns, row.one_link.attach_ns),
                         Seconds(timing.detach_ns),
                         Ratio(timing.detach_ns, row.one_link.detach_ns));
}

std::string Json(const Row& row) {
  const Timing& timing = row.timing;
  return absl::StrFormat(
      R"({"kinds": "%s", "form": "%s", "functions": %d, "measured": %d, )"
      R"("links": %d, "attach_ns": %d, "detach_ns": %d, )"
      R"("attach_ratio": %.3f, "detach_ratio": %.3f})",
      row.kinds, row.form, timing.functions, row.measured, timing.links,
      timing.attach_ns, timing.detach_ns,
      Ratio(timing.attach_ns, row.one_link.attach_ns),
      Ratio(timing.detach_ns, row.one_link.detach_ns));
}

// `one_link` is that of the row before, and of the next one then.
absl::StatusOr<Row> MakeRow(const Way& way, const Functions& functions,
                            const Amount& amount, Timing* one_link) {
  const absl::StatusOr<Timing> timing =
      Measure(way, functions.Of(way.form), amount);
  if (!timing.ok()) return timing.status();
  if (way.form == Form::kOneLink) *one_link = *timing;
  Row row;
  row.kinds = KindsText(way.kinds);
  row.form = FormText(way, amount);
  row.measured = timing->functions;
  row.timing = way.form == Form::kSingle
                   ? Scaled(*timing, functions.all.targets().size())
                   : *timing;
  row.one_link = *one_link;
  return row;
}

}  // namespace

bool MeasureWays(const Amount& amount, Report* report) {
  const absl::StatusOr<Functions> functions = FindFunctions(amount);
  if (!functions.ok()) return Fail("functions", functions.status());
  report->Begin("ways");
  report->AddHeading(Heading(functions->all));
  Timing one_link;
  for (const Way& way : kWays) {
    const absl::StatusOr<Row> row = MakeRow(way, *functions, amount, &one_link);
    if (!row.ok()) {
      return Fail(KindsText(way.kinds) + ", " + FormText(way, amount),
                  row.status());
    }
    report->Add(Text(*row), Json(*row));
  }
  return true;
}

}  // namespace ksweep::bench
