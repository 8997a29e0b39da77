#include "selftests/bench/attach/scope.h"

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ksweep/kernel_files.h"
#include "ksweep/request.h"
#include "lib/base/glob.h"

namespace ksweep::bench {
namespace {

constexpr char kFilterList[] = "/sys/kernel/tracing/available_filter_functions";

absl::StatusOr<std::vector<Request>> ScopeRequests(Scope scope,
                                                   const Amount& amount) {
  std::vector<Request> requests;
  if (scope != Scope::kModules) {
    absl::StatusOr<Request> core =
        Request::Glob(std::string(amount.core), Owner::Core());
    if (!core.ok()) return core.status();
    requests.push_back(*std::move(core));
  }
  if (scope != Scope::kCore) {
    absl::StatusOr<Request> modules = Request::Glob("*", Owner::Module("*"));
    if (!modules.ok()) return modules.status();
    requests.push_back(*std::move(modules));
  }
  return requests;
}

bool IsDefaultDenied(std::string_view name) {
  for (const DefaultDeny& entry : DefaultDenyList()) {
    if (GlobMatch(entry.pattern, name)) return true;
  }
  return false;
}

void CountLine(std::string_view line, const Amount& amount, FilterList* list) {
  const std::string_view name = line.substr(0, line.find_first_of(" \t"));
  const bool of_module = line.find('[') != std::string_view::npos;
  if (!of_module && !GlobMatch(amount.core, name)) return;
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

absl::StatusOr<Resolution> ResolveScope(Scope scope, KindSet kinds,
                                        const Amount& amount) {
  absl::StatusOr<std::vector<Request>> requests = ScopeRequests(scope, amount);
  if (!requests.ok()) return requests.status();
  ResolveOptions options;
  options.kinds = kinds;
  return Resolve(*std::move(requests), KernelFiles(), options);
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

absl::StatusOr<FilterList> CountFilterList(const Amount& amount) {
  FilterList list;
  std::ifstream in(kFilterList);
  for (std::string line; std::getline(in, line);)
    CountLine(line, amount, &list);
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
