#include "funccount_report.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/json.h"
#include "common/left_outs.h"
#include "common/table.h"

namespace examples {
namespace {

// Slots with calls, the most called first, equal ones in order of address.
std::vector<uint32_t> CalledSlots(const CountResult& result) {
  std::vector<uint32_t> slots;
  for (uint32_t slot = 0; slot < result.calls.size(); ++slot) {
    if (result.calls[slot] > 0) slots.push_back(slot);
  }
  std::stable_sort(slots.begin(), slots.end(), [&](uint32_t a, uint32_t b) {
    return result.calls[a] > result.calls[b];
  });
  return slots;
}

size_t Shown(size_t called, uint64_t top) {
  return top == 0 ? called : std::min<uint64_t>(called, top);
}

uint64_t Total(const CountResult& result) {
  return std::accumulate(result.calls.begin(), result.calls.end(), uint64_t{0});
}

const ksweep::Target& TargetOf(const CountResult& result, uint32_t slot) {
  return result.resolution.targets()[result.targets[slot]];
}

double Rate(const CountResult& result, uint64_t calls) {
  return result.seconds > 0 ? static_cast<double>(calls) / result.seconds : 0;
}

std::vector<std::string> Row(const CountResult& result, uint32_t slot,
                             uint64_t total) {
  const ksweep::Target& target = TargetOf(result, slot);
  const uint64_t calls = result.calls[slot];
  const double percent =
      100.0 * static_cast<double>(calls) / static_cast<double>(total);
  return {Printable(target.name), ModuleText(target.module), WithCommas(calls),
          WithCommas(static_cast<uint64_t>(Rate(result, calls) + 0.5)),
          absl::StrFormat("%.1f", percent)};
}

void WriteFunctions(const CountResult& result, uint64_t top, JsonWriter* json) {
  const std::vector<uint32_t> slots = CalledSlots(result);
  json->Key("functions_called").Number(slots.size());
  json->Line();
  json->Key("functions").BeginArray();
  for (size_t i = 0; i < Shown(slots.size(), top); ++i) {
    const ksweep::Target& target = TargetOf(result, slots[i]);
    const uint64_t calls = result.calls[slots[i]];
    json->Line();
    json->BeginObject();
    json->Key("name").String(target.name);
    json->Key("module");
    target.module.empty() ? json->Null() : json->String(target.module);
    json->Key("addr").Addr(target.addr);
    json->Key("calls").Number(calls);
    json->Key("calls_per_second").Decimal(Rate(result, calls), 1);
    json->EndObject();
  }
  json->EndArray();
}

void WriteLeftOuts(const ksweep::Resolution& resolution, JsonWriter* json) {
  std::map<ksweep::Reason, uint64_t> reasons;
  for (const ksweep::Omission& omission : resolution.omissions()) {
    ++reasons[omission.reason];
  }
  json->Line();
  json->Key("left_out").BeginObject();
  for (const auto& [reason, cnt] : reasons) {
    json->Key(ksweep::ReasonName(reason)).Number(cnt);
  }
  json->EndObject();
  json->Key("unmatched").BeginArray();
  for (const ksweep::Unmatched& unmatched : resolution.unmatched()) {
    json->BeginObject();
    json->Key("request").String(
        resolution.requests()[unmatched.request].ToString());
    json->Key("reason").String(ksweep::ReasonName(unmatched.reason));
    json->EndObject();
  }
  json->EndArray();
  json->Key("notes").BeginArray();
  for (const std::string& note : resolution.stats().notes) json->String(note);
  json->EndArray();
}

}  // namespace

std::string AttachedText(const CountResult& result, bool verbose) {
  const ksweep::Resolution& resolution = result.resolution;
  std::string text = absl::StrFormat(
      "attached %d functions in %d links (resolved in %s, attached in %s)\n",
      result.targets.size(), result.links,
      Milliseconds(resolution.stats().total_ns),
      Milliseconds(result.attach_ns));
  const size_t omissions = resolution.omissions().size();
  const size_t unmatched = resolution.unmatched().size();
  if (verbose) {
    AppendLeftOuts(resolution, true, &text);
  } else if (omissions + unmatched > 0) {
    absl::StrAppendFormat(
        &text, "%s left out, %s without a target (--verbose lists them)\n",
        WithCommas(omissions), Count(unmatched, "request"));
  }
  return text;
}

std::string CountText(const CountResult& result, uint64_t top) {
  const std::vector<uint32_t> slots = CalledSlots(result);
  const size_t shown = Shown(slots.size(), top);
  const uint64_t total = Total(result);

  Table table("llrrr");
  table.AddRow({"FUNCTION", "MODULE", "CALLS", "CALLS/s", "%"});
  for (size_t i = 0; i < shown; ++i) {
    table.AddRow(Row(result, slots[i], total));
  }
  std::string text = "\n";
  table.AppendTo(&text);
  if (shown < slots.size()) {
    absl::StrAppendFormat(&text, "… and %s more that were called (--top=0)\n",
                          WithCommas(slots.size() - shown));
  }
  absl::StrAppendFormat(
      &text,
      "\n%s of %s in %.2f s, detached in %s\n"
      "missed %s: %s by ftrace's recursion guard, %s while a BPF program ran\n",
      Count(total, "call"), Count(slots.size(), "function"), result.seconds,
      Milliseconds(result.detach_ns),
      Count(result.missed_by_link + result.missed_by_prog, "call"),
      WithCommas(result.missed_by_link), WithCommas(result.missed_by_prog));
  return text;
}

std::string CountJson(const CountResult& result, uint64_t top) {
  JsonWriter json;
  json.BeginObject();
  json.Key("attached").Number(result.targets.size());
  json.Key("links").Number(result.links);
  json.Key("seconds").Decimal(result.seconds, 3);
  json.Key("total_calls").Number(Total(result));
  WriteFunctions(result, top, &json);
  json.Line();
  json.Key("missed").BeginObject();
  json.Key("link").Number(result.missed_by_link);
  json.Key("prog").Number(result.missed_by_prog);
  json.EndObject();
  WriteLeftOuts(result.resolution, &json);
  json.Line();
  json.Key("resolve_ns").Number(result.resolution.stats().total_ns);
  json.Key("attach_ns").Number(result.attach_ns);
  json.Key("detach_ns").Number(result.detach_ns);
  json.EndObject();
  return json.text() + "\n";
}

}  // namespace examples
