#include "common/left_outs.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/table.h"

namespace examples {
namespace {

using ksweep::Omission;
using ksweep::Reason;
using ksweep::Resolution;
using ksweep::Unmatched;

constexpr size_t kShortRows = 5;

// How many of `count` rows are shown. A cut has to save more than its own line.
size_t ShownRows(size_t count, bool all) {
  return all || count <= kShortRows + 1 ? count : kShortRows;
}

void AppendCut(size_t left, std::string_view indent, std::string* out) {
  if (left == 0) return;
  absl::StrAppendFormat(out, "%s… and %s more (--verbose lists them)\n", indent,
                        WithCommas(left));
}

void AppendGroup(Reason reason, const std::vector<const Omission*>& group,
                 bool all, std::string* out) {
  absl::StrAppendFormat(out, "\n%s, %s left out:\n", ksweep::ReasonName(reason),
                        WithCommas(group.size()));
  const size_t shown = ShownRows(group.size(), all);
  Table table("llll");
  for (size_t i = 0; i < shown; ++i) {
    const Omission& omission = *group[i];
    table.AddRow({AddrText(omission.addr), ModuleText(omission.module),
                  Printable(omission.name), Printable(omission.detail)});
  }
  table.AppendTo(out, "  ");
  AppendCut(group.size() - shown, "  ", out);
}

// What is known about a request without a target.
std::string Explain(const Unmatched& unmatched, bool all) {
  std::string text = Printable(unmatched.detail);
  if (unmatched.candidates.empty()) return text;
  if (!text.empty()) text += "; ";
  text += "candidates:";
  const size_t shown = ShownRows(unmatched.candidates.size(), all);
  for (size_t i = 0; i < shown; ++i) {
    text.append(" ").append(Printable(unmatched.candidates[i]));
  }
  if (const size_t left = unmatched.candidates.size() - shown; left > 0) {
    absl::StrAppendFormat(&text, " … and %s more", WithCommas(left));
  }
  return text;
}

void AppendUnmatched(const Resolution& resolution, bool all, std::string* out) {
  const std::vector<Unmatched>& unmatched = resolution.unmatched();
  if (unmatched.empty()) return;
  absl::StrAppendFormat(out, "\n%s without a target:\n",
                        Count(unmatched.size(), "request"));
  const size_t shown = ShownRows(unmatched.size(), all);
  Table table("lll");
  for (size_t i = 0; i < shown; ++i) {
    const ksweep::Request& request =
        resolution.requests()[unmatched[i].request];
    table.AddRow({Printable(request.ToString()),
                  std::string(ksweep::ReasonName(unmatched[i].reason)),
                  Explain(unmatched[i], all)});
  }
  table.AppendTo(out, "  ");
  AppendCut(unmatched.size() - shown, "  ", out);
}

}  // namespace

void AppendLeftOuts(const Resolution& resolution, bool all, std::string* out) {
  std::map<Reason, std::vector<const Omission*>> groups;
  for (const Omission& omission : resolution.omissions()) {
    groups[omission.reason].push_back(&omission);
  }
  for (const auto& [reason, group] : groups) {
    AppendGroup(reason, group, all, out);
  }
  AppendUnmatched(resolution, all, out);
}

void AppendNotes(const ksweep::ResolveStats& stats, std::string* out) {
  for (const std::string& note : stats.notes) {
    absl::StrAppendFormat(out, "note: %s\n", Printable(note));
  }
  if (stats.malformed > 0) {
    absl::StrAppendFormat(
        out, "note: %s of kallsyms skipped, malformed; the first is line %d\n",
        Count(stats.malformed, "line"),
        stats.malformed_lines.empty() ? 0 : stats.malformed_lines[0]);
  }
  if (!stats.unjoined.empty()) {
    absl::StrAppendFormat(
        out, "note: %s of the filter list without a symbol, such as %s\n",
        Count(stats.unjoined.size(), "line"),
        Printable(stats.unjoined[0].name));
  }
}

std::string_view AddressStateName(ksweep::AddressState state) {
  switch (state) {
    case ksweep::AddressState::kFull:
      return "full";
    case ksweep::AddressState::kPartial:
      return "partial";
    case ksweep::AddressState::kHidden:
      return "hidden";
  }
  return "unknown";
}

}  // namespace examples
