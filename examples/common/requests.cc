#include "common/requests.h"

#include <iterator>
#include <optional>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "ksweep/kind.h"

ABSL_FLAG(std::string, root, "/",
          "folder below which proc/kallsyms and the other lists are read; a "
          "copy of another machine's lists is as good");
ABSL_FLAG(std::vector<std::string>, kind, {examples::kAutoKind},
          "how the functions will be attached, which decides what can be a "
          "target: auto (the best for the program; resolve: kprobe.multi), "
          "kprobe.multi, kretprobe.multi, kprobe.session, kprobe, kretprobe, "
          "fentry, fexit, fsession, fentry.multi, fexit.multi, "
          "fsession.multi; several with commas");
ABSL_FLAG(bool, clones, false,
          "exact names also take the compiler's copies, such as f.isra.0");
ABSL_FLAG(bool, report_missing, false,
          "an exact name without a target is reported and no failure");
ABSL_FLAG(uint64_t, max_targets, 0,
          "fail with more targets than this; 0: never");
ABSL_FLAG(bool, default_deny, true,
          "globs leave out the functions that tracing itself runs through");
ABSL_FLAG(std::string, requests, "",
          "file with requests, one a line; \"-\": the standard input");
ABSL_FLAG(bool, json, false, "print the result as one JSON object");
ABSL_FLAG(bool, verbose, false, "list everything that is left out (also: -v)");

namespace examples {
namespace {

absl::StatusOr<ksweep::KindSet> ReadKinds() {
  const std::vector<std::string> names = absl::GetFlag(FLAGS_kind);
  if (names == std::vector<std::string>{kAutoKind}) {
    return ksweep::KindSet{ksweep::Kind::kKprobeMulti};
  }
  ksweep::KindSet kinds;
  for (const std::string& name : names) {
    const std::optional<ksweep::Kind> kind = ksweep::ParseKind(name);
    if (!kind.has_value()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "--kind=%s: there is no such kind; --help lists them", name));
    }
    kinds.Add(*kind);
  }
  if (kinds.empty()) {
    return absl::InvalidArgumentError(
        "--kind: the kind is missing; the usual one is kprobe.multi");
  }
  return kinds;
}

absl::StatusOr<std::vector<ksweep::Request>> ReadRequests(
    const std::vector<std::string>& texts) {
  std::vector<ksweep::Request> requests;
  if (const std::string path = absl::GetFlag(FLAGS_requests); !path.empty()) {
    absl::StatusOr<std::vector<ksweep::Request>> loaded =
        ksweep::LoadRequests(path);
    if (!loaded.ok()) return loaded.status();
    requests = *std::move(loaded);
  }
  for (const std::string& text : texts) {
    if (text == "-") {
      return absl::InvalidArgumentError(
          "-: no request; requests are read from the standard input with "
          "--requests=-");
    }
    absl::StatusOr<ksweep::Request> request = ksweep::Request::Parse(text);
    if (!request.ok()) return request.status();
    requests.push_back(*std::move(request));
  }
  if (requests.empty()) {
    return absl::InvalidArgumentError(
        "no request; give function names or globs such as 'vfs_*', or "
        "--requests=FILE; --help tells more");
  }
  return requests;
}

}  // namespace

absl::StatusOr<Query> ReadQuery(const std::vector<std::string>& requests) {
  const std::string root = absl::GetFlag(FLAGS_root);
  if (root.empty()) {
    return absl::InvalidArgumentError(
        "--root: the folder is missing; \"/\" is the running kernel");
  }
  absl::StatusOr<ksweep::KindSet> kinds = ReadKinds();
  if (!kinds.ok()) return kinds.status();
  absl::StatusOr<std::vector<ksweep::Request>> parsed = ReadRequests(requests);
  if (!parsed.ok()) return parsed.status();

  Query query;
  query.requests = *std::move(parsed);
  query.files = ksweep::KernelFiles(root);
  query.options.kinds = *kinds;
  query.options.missing = ksweep::OnMissing::kReport;
  query.options.clones = absl::GetFlag(FLAGS_clones);
  query.options.default_deny = absl::GetFlag(FLAGS_default_deny);
  query.options.max_targets = absl::GetFlag(FLAGS_max_targets);
  return query;
}

absl::Status CheckResolution(
    const absl::StatusOr<ksweep::Resolution>& resolution) {
  if (!resolution.ok()) return resolution.status();
  if (absl::GetFlag(FLAGS_report_missing)) return absl::OkStatus();
  absl::Status missing = resolution->CheckMissing();
  if (missing.ok()) return missing;
  return {missing.code(),
          absl::StrFormat("%s (--report_missing)", missing.message())};
}

}  // namespace examples
