#include "funccount_report.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/json.h"
#include "common/table.h"

namespace examples {
namespace {

using ksweep::Attachment;

constexpr size_t kBarWidth = 24;

// A line of the table: a function or a module.
struct Row {
  uint32_t slot = 0;  // of the function
  std::string module = {};
  uint64_t functions = 0;  // called, of a module
  uint64_t calls = 0;
};

// The most called first, equal ones in order of address.
void SortRows(std::vector<Row>* rows) {
  std::stable_sort(rows->begin(), rows->end(), [](const Row& a, const Row& b) {
    return a.calls > b.calls;
  });
}

// Functions with calls.
std::vector<Row> FunctionRows(const Attachment& attachment,
                              const CountResult& result) {
  std::vector<Row> rows;
  for (uint32_t slot = 0; slot < result.calls.size(); ++slot) {
    if (result.calls[slot] == 0) continue;
    rows.push_back(
        {.slot = slot,
         .module = std::string(TargetOfSlot(attachment, slot).module),
         .calls = result.calls[slot]});
  }
  SortRows(&rows);
  return rows;
}

std::vector<Row> ModuleRows(const std::vector<Row>& functions) {
  std::map<std::string, Row> modules;
  for (const Row& function : functions) {
    Row& row = modules.try_emplace(function.module).first->second;
    row.module = function.module;
    ++row.functions;
    row.calls += function.calls;
  }
  std::vector<Row> rows;
  for (const auto& [module, row] : modules) rows.push_back(row);
  SortRows(&rows);
  return rows;
}

std::vector<Row> RowsOf(const Attachment& attachment, const CountResult& result,
                        const CountView& view) {
  std::vector<Row> functions = FunctionRows(attachment, result);
  return view.by_module ? ModuleRows(functions) : functions;
}

size_t Shown(size_t called, uint64_t top) {
  return top == 0 ? called : std::min<uint64_t>(called, top);
}

uint64_t Total(const CountResult& result) {
  return std::accumulate(result.calls.begin(), result.calls.end(), uint64_t{0});
}

double Rate(const CountResult& result, uint64_t calls) {
  return result.seconds > 0 ? static_cast<double>(calls) / result.seconds : 0;
}

std::vector<std::string> Cells(const Attachment& attachment,
                               const CountResult& result, const CountView& view,
                               const Row& row, uint64_t total, uint64_t most) {
  const double percent =
      100.0 * static_cast<double>(row.calls) / static_cast<double>(total);
  std::vector<std::string> cells;
  if (view.by_module) {
    cells = {ModuleText(row.module), WithCommas(row.functions)};
  } else {
    cells = {Printable(TargetOfSlot(attachment, row.slot).name),
             ModuleText(row.module)};
  }
  cells.push_back(WithCommas(row.calls));
  cells.push_back(
      WithCommas(static_cast<uint64_t>(Rate(result, row.calls) + 0.5)));
  cells.push_back(absl::StrFormat("%.1f", percent));
  if (view.bars) cells.push_back(Bar(row.calls, most, kBarWidth));
  return cells;
}

void WriteModule(const Row& row, const CountResult& result, JsonWriter* json) {
  json->Key("module");
  row.module.empty() ? json->Null() : json->String(row.module);
  json->Key("functions").Number(row.functions);
  json->Key("calls").Number(row.calls);
  json->Key("calls_per_second").Decimal(Rate(result, row.calls), 1);
}

void WriteFunction(const ksweep::Target& target, const Row& row,
                   const CountResult& result, JsonWriter* json) {
  json->Key("name").String(target.name);
  json->Key("module");
  target.module.empty() ? json->Null() : json->String(target.module);
  json->Key("addr").Addr(target.addr);
  json->Key("calls").Number(row.calls);
  json->Key("calls_per_second").Decimal(Rate(result, row.calls), 1);
}

void WriteRows(const Attachment& attachment, const CountResult& result,
               const CountView& view, JsonWriter* json) {
  const std::vector<Row> functions = FunctionRows(attachment, result);
  const std::vector<Row> rows =
      view.by_module ? ModuleRows(functions) : functions;
  json->Key("functions_called").Number(functions.size());
  json->Line();
  json->Key(view.by_module ? "modules" : "functions").BeginArray();
  for (size_t i = 0; i < Shown(rows.size(), view.top); ++i) {
    json->Line();
    json->BeginObject();
    if (view.by_module) {
      WriteModule(rows[i], result, json);
    } else {
      WriteFunction(TargetOfSlot(attachment, rows[i].slot), rows[i], result,
                    json);
    }
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

std::string CountTable(const Attachment& attachment, const CountResult& result,
                       const CountView& view) {
  const std::vector<Row> rows = RowsOf(attachment, result, view);
  const size_t shown = Shown(rows.size(), view.top);
  const uint64_t total = Total(result);

  Table table(std::string(view.by_module ? "lrrrr" : "llrrr") +
              (view.bars ? "l" : ""));
  std::vector<std::string> head =
      view.by_module ? std::vector<std::string>{"MODULE", "FUNCTIONS"}
                     : std::vector<std::string>{"FUNCTION", "MODULE"};
  for (const char* name : {"CALLS", "CALLS/s", "%"}) head.emplace_back(name);
  if (view.bars) head.emplace_back();
  table.AddRow(head);
  for (size_t i = 0; i < shown; ++i) {
    table.AddRow(
        Cells(attachment, result, view, rows[i], total, rows[0].calls));
  }
  std::string text = "\n";
  table.AppendTo(&text);
  if (shown < rows.size()) {
    absl::StrAppendFormat(&text, "… and %s more that were called (--top=0)\n",
                          WithCommas(rows.size() - shown));
  }
  return text;
}

std::string CountSummary(const CountResult& result) {
  const auto called = std::count_if(result.calls.begin(), result.calls.end(),
                                    [](uint64_t calls) { return calls > 0; });
  return absl::StrFormat(
      "\n%s of %s in %.2f s, detached in %s\n%s", Count(Total(result), "call"),
      Count(called, "function"), result.seconds, Milliseconds(result.detach_ns),
      MissedText(result.missed, "call"));
}

std::string CountJson(const Attachment& attachment, const CountResult& result,
                      const CountView& view) {
  const ksweep::AttachReport report = attachment.Report();
  JsonWriter json;
  json.BeginObject();
  json.Key("attached").Number(report.attached);
  json.Key("links").Number(report.links);
  json.Key("seconds").Decimal(result.seconds, 3);
  json.Key("total_calls").Number(Total(result));
  WriteRows(attachment, result, view, &json);
  json.Line();
  json.Key("missed").BeginObject();
  json.Key("link").Number(result.missed.by_link);
  json.Key("prog").Number(result.missed.by_prog);
  json.EndObject();
  WriteLeftOuts(attachment.resolution(), &json);
  json.Line();
  json.Key("resolve_ns").Number(report.resolve_ns);
  json.Key("attach_ns").Number(report.attach_ns);
  json.Key("detach_ns").Number(result.detach_ns);
  json.EndObject();
  return json.text() + "\n";
}

}  // namespace examples
