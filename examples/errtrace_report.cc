#include "errtrace_report.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/json.h"
#include "common/table.h"

namespace examples {
namespace {

using ksweep::Attachment;

using Row = std::pair<std::pair<int, uint32_t>, uint64_t>;

std::vector<Row> SortedRows(const ErrorCounts& counts) {
  std::vector<Row> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.second > b.second;
  });
  return rows;
}

size_t Shown(size_t cnt, uint64_t top) {
  return top == 0 ? cnt : std::min<uint64_t>(cnt, top);
}

uint64_t Total(const ErrorCounts& counts) {
  uint64_t total = 0;
  for (const auto& [key, cnt] : counts) total += cnt;
  return total;
}

void WriteErrors(const Attachment& attachment, const ErrorCounts& counts,
                 uint64_t top, JsonWriter* json) {
  const std::vector<Row> rows = SortedRows(counts);
  json->Key("errors").BeginArray();
  for (size_t i = 0; i < Shown(rows.size(), top); ++i) {
    const auto& [err, slot] = rows[i].first;
    const ksweep::Target& target = TargetOfSlot(attachment, slot);
    json->Line();
    json->BeginObject();
    json->Key("error").String(ErrorName(err));
    json->Key("errno").Number(err);
    json->Key("first").String(target.name);
    json->Key("module");
    target.module.empty() ? json->Null() : json->String(target.module);
    json->Key("times").Number(rows[i].second);
    json->EndObject();
  }
  json->EndArray();
}

void WriteChain(const Attachment& attachment, const ErrorChain& chain,
                JsonWriter* json) {
  json->Line();
  json->BeginObject();
  json->Key("pid").Number(chain.pid);
  json->Key("comm").String(chain.comm);
  json->Key("error").String(ErrorName(chain.err));
  json->Key("errno").Number(chain.err);
  json->Key("functions").BeginArray();
  for (const uint32_t slot : chain.slots) {
    json->String(TargetOfSlot(attachment, slot).name);
  }
  json->EndArray();
  json->Key("more").Number(chain.more);
  json->EndObject();
}

}  // namespace

std::string ChainLine(const Attachment& attachment, const ErrorChain& chain) {
  std::string text =
      absl::StrFormat("%7d %-15s %-12s", chain.pid, Printable(chain.comm),
                      ErrorName(chain.err));
  const char* arrow = " ";
  for (const uint32_t slot : chain.slots) {
    text.append(arrow).append(Printable(TargetOfSlot(attachment, slot).name));
    arrow = " → ";
  }
  if (chain.more > 0) {
    absl::StrAppendFormat(&text, " → … %s more", WithCommas(chain.more));
  }
  return text + "\n";
}

std::string ErrorTable(const Attachment& attachment, const ErrorCounts& counts,
                       uint64_t top) {
  const std::vector<Row> rows = SortedRows(counts);
  const size_t shown = Shown(rows.size(), top);
  if (rows.empty()) return "\nno error came out\n";
  Table table("lllr");
  table.AddRow({"ERROR", "FIRST RETURNED BY", "MODULE", "TIMES"});
  for (size_t i = 0; i < shown; ++i) {
    const auto& [err, slot] = rows[i].first;
    const ksweep::Target& target = TargetOfSlot(attachment, slot);
    table.AddRow({ErrorName(err), Printable(target.name),
                  ModuleText(target.module), WithCommas(rows[i].second)});
  }
  std::string text = "\n";
  table.AppendTo(&text);
  if (shown < rows.size()) {
    absl::StrAppendFormat(&text, "… and %s more (--top=0)\n",
                          WithCommas(rows.size() - shown));
  }
  return text;
}

std::string ErrorSummary(const ErrorResult& result) {
  std::string text = absl::StrFormat(
      "\n%s in %.2f s\n", Count(Total(result.counts), "error"), result.seconds);
  if (result.lost_events + result.lost_calls > 0) {
    absl::StrAppendFormat(
        &text,
        "lost %s (buffer full) and %s (too many threads, too deep, or a "
        "missed return)\n",
        Count(result.lost_events, "error"), Count(result.lost_calls, "call"));
  }
  return text + MissedText(result.missed, "hit");
}

std::string ErrorJson(const Attachment& attachment, const ErrorResult& result,
                      uint64_t top) {
  const ksweep::AttachReport report = attachment.Report();
  JsonWriter json;
  json.BeginObject();
  json.Key("attached").Number(report.attached);
  json.Key("links").Number(report.links);
  json.Key("seconds").Decimal(result.seconds, 3);
  json.Key("lost_events").Number(result.lost_events);
  json.Key("lost_calls").Number(result.lost_calls);
  json.Key("missed").BeginObject();
  json.Key("link").Number(result.missed.by_link);
  json.Key("prog").Number(result.missed.by_prog);
  json.EndObject();
  json.Line();
  WriteErrors(attachment, result.counts, top, &json);
  json.Line();
  json.Key("chains").BeginArray();
  for (const ErrorChain& chain : result.chains) {
    WriteChain(attachment, chain, &json);
  }
  json.EndArray();
  json.EndObject();
  return json.text() + "\n";
}

}  // namespace examples
