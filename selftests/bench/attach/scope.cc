#include "selftests/bench/attach/scope.h"

#include <fstream>
#include <utility>

#include "absl/strings/str_format.h"
#include "ksweep/kernel_files.h"
#include "ksweep/request.h"
#include "lib/base/glob.h"

namespace ksweep::bench {
namespace {

constexpr char kFilterList[] = "/sys/kernel/tracing/available_filter_functions";

std::string_view ScopeRequest(Scope scope) {
  switch (scope) {
    case Scope::kCore:
      return "vmlinux:*";
    case Scope::kModules:
      return "*:*";
    case Scope::kAll:
      break;
  }
  return "*";
}

bool IsDefaultDenied(std::string_view name) {
  for (const DefaultDeny& entry : DefaultDenyList()) {
    if (GlobMatch(entry.pattern, name)) return true;
  }
  return false;
}

void CountLine(std::string_view line, FilterList* list) {
  const std::string_view name = line.substr(0, line.find_first_of(" \t"));
  const bool of_module = line.find('[') != std::string_view::npos;
  ListCounts& counts = of_module ? list->modules : list->core;
  ++counts.lines;
  if (name.starts_with("__ftrace_invalid_address__")) {
    ++counts.placeholders;
  } else if (IsDefaultDenied(name)) {
    ++counts.denied;
  }
}

}  // namespace

std::string_view ScopeName(Scope scope) {
  switch (scope) {
    case Scope::kCore:
      return "core";
    case Scope::kModules:
      return "modules";
    case Scope::kAll:
      break;
  }
  return "core and modules";
}

absl::StatusOr<Resolution> ResolveScope(Scope scope, KindSet kinds) {
  absl::StatusOr<Request> request = Request::Parse(ScopeRequest(scope));
  if (!request.ok()) return request.status();
  ResolveOptions options;
  options.kinds = kinds;
  return Resolve({*std::move(request)}, KernelFiles(), options);
}

std::string ListText(const ListCounts& list) {
  return absl::StrFormat("%d listed, %d denied, %d placeholders", list.lines,
                         list.denied, list.placeholders);
}

ListCounts FilterList::Of(Scope scope) const {
  if (scope == Scope::kCore) return core;
  if (scope == Scope::kModules) return modules;
  return {core.lines + modules.lines, core.placeholders + modules.placeholders,
          core.denied + modules.denied};
}

absl::StatusOr<FilterList> CountFilterList() {
  FilterList list;
  std::ifstream in(kFilterList);
  for (std::string line; std::getline(in, line);) CountLine(line, &list);
  if (list.core.lines > 0) return list;
  return absl::NotFoundError(
      absl::StrFormat("no function in %s; not root?", kFilterList));
}

absl::Status CheckTargets(const Resolution& resolution,
                          const ListCounts& list) {
  if (resolution.targets().size() == list.wanted()) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat(
      "resolved to %d functions instead of %d: %s", resolution.targets().size(),
      list.wanted(), ListText(list)));
}

}  // namespace ksweep::bench
