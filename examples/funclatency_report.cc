#include "funclatency_report.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/json.h"
#include "common/table.h"

namespace examples {
namespace {

constexpr size_t kBarWidth = 40;

uint64_t SortKey(const Latency& latency, SortBy sort) {
  switch (sort) {
    case SortBy::kCalls:
      return latency.calls;
    case SortBy::kMax:
      return latency.max_ns;
    case SortBy::kAverage:
      return latency.AverageNs();
    case SortBy::kTotal:
      break;
  }
  return latency.total_ns;
}

// Slots with ended calls, in the order of the view.
std::vector<uint32_t> CalledSlots(const std::vector<Latency>& by_slot,
                                  SortBy sort) {
  std::vector<uint32_t> slots;
  for (uint32_t slot = 0; slot < by_slot.size(); ++slot) {
    if (by_slot[slot].calls > 0) slots.push_back(slot);
  }
  std::stable_sort(slots.begin(), slots.end(), [&](uint32_t a, uint32_t b) {
    return SortKey(by_slot[a], sort) > SortKey(by_slot[b], sort);
  });
  return slots;
}

size_t Shown(size_t cnt, uint64_t top) {
  return top == 0 ? cnt : std::min<uint64_t>(cnt, top);
}

Latency SumOf(const std::vector<Latency>& by_slot) {
  Latency all;
  for (const Latency& latency : by_slot) all.Add(latency);
  return all;
}

std::string Time(uint64_t ns, const LatencyView& view) {
  const double time = static_cast<double>(ns) / view.ns_per_unit;
  return absl::StrFormat("%.*f", view.ns_per_unit == 1 ? 0 : 1, time);
}

// 1, 512, 1K, 512K, 1M, 1G: powers of two of nanoseconds.
std::string PowerText(size_t power) {
  constexpr const char* kSuffixes[] = {"", "K", "M", "G", "T"};
  return absl::StrFormat("%d%s", uint64_t{1} << power % 10,
                         kSuffixes[power / 10]);
}

std::string BucketText(size_t bucket) {
  const std::string begin = bucket == 0 ? "0" : PowerText(bucket);
  if (bucket == kBuckets - 1) return absl::StrFormat("[%s, …)", begin);
  return absl::StrFormat("[%s, %s)", begin, PowerText(bucket + 1));
}

std::string Histogram(const Latency& latency) {
  const auto& buckets = latency.buckets;
  size_t first = 0;
  while (first < kBuckets && buckets[first] == 0) ++first;
  size_t end = kBuckets;
  while (end > first && buckets[end - 1] == 0) --end;
  const uint64_t most = *std::max_element(buckets.begin(), buckets.end());
  Table table("lrl");
  for (size_t i = first; i < end; ++i) {
    table.AddRow({BucketText(i), WithCommas(buckets[i]),
                  "|" + Bar(buckets[i], most, kBarWidth) + "|"});
  }
  std::string text;
  table.AppendTo(&text);
  return text;
}

void WriteLatency(const Latency& latency, JsonWriter* json) {
  json->Key("calls").Number(latency.calls);
  json->Key("total_ns").Number(latency.total_ns);
  json->Key("max_ns").Number(latency.max_ns);
  json->Key("buckets").BeginArray();
  size_t end = kBuckets;
  while (end > 0 && latency.buckets[end - 1] == 0) --end;
  for (size_t i = 0; i < end; ++i) json->Number(latency.buckets[i]);
  json->EndArray();
}

}  // namespace

void Latency::Add(absl::Span<const uint64_t> words) {
  entries += words[0];
  calls += words[1];
  total_ns += words[2];
  max_ns = std::max(max_ns, words[3]);
  for (size_t i = 0; i < kBuckets; ++i) buckets[i] += words[4 + i];
}

void Latency::Add(const Latency& other) {
  entries += other.entries;
  calls += other.calls;
  total_ns += other.total_ns;
  max_ns = std::max(max_ns, other.max_ns);
  for (size_t i = 0; i < kBuckets; ++i) buckets[i] += other.buckets[i];
}

Latency Latency::Since(const Latency& before) const {
  Latency since = *this;
  since.entries -= before.entries;
  since.calls -= before.calls;
  since.total_ns -= before.total_ns;
  for (size_t i = 0; i < kBuckets; ++i) since.buckets[i] -= before.buckets[i];
  return since;
}

uint64_t Latency::QuantileNs(double part) const {
  const double wanted = part * static_cast<double>(calls);
  uint64_t passed = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    passed += buckets[i];
    if (passed > 0 && static_cast<double>(passed) >= wanted) {
      return std::min((uint64_t{2} << i) - 1, max_ns);
    }
  }
  return max_ns;
}

absl::StatusOr<SortBy> ParseSortBy(std::string_view name) {
  if (name == "total") return SortBy::kTotal;
  if (name == "calls") return SortBy::kCalls;
  if (name == "max") return SortBy::kMax;
  if (name == "avg") return SortBy::kAverage;
  return absl::InvalidArgumentError(
      absl::StrFormat("--sort=%s: not one of total, calls, max, avg", name));
}

absl::Status SetUnit(std::string_view unit, LatencyView* view) {
  view->unit = std::string(unit);
  if (unit == "ns") {
    view->ns_per_unit = 1;
  } else if (unit == "us") {
    view->ns_per_unit = 1e3;
  } else if (unit == "ms") {
    view->ns_per_unit = 1e6;
  } else if (unit == "s") {
    view->ns_per_unit = 1e9;
  } else {
    return absl::InvalidArgumentError(
        absl::StrFormat("--unit=%s: not one of ns, us, ms, s", unit));
  }
  return absl::OkStatus();
}

std::string LatencyTable(const ksweep::Attachment& attachment,
                         const std::vector<Latency>& by_slot,
                         const LatencyView& view) {
  const std::vector<uint32_t> slots = CalledSlots(by_slot, view.sort);
  if (slots.empty()) return "\nno call has ended\n";
  const size_t shown = Shown(slots.size(), view.top);
  Table table("llrrrrrr");
  table.AddRow({"FUNCTION", "MODULE", "CALLS", "TOTAL " + view.unit, "AVG",
                "P50", "P99", "MAX"});
  for (size_t i = 0; i < shown; ++i) {
    const ksweep::Target& target = TargetOfSlot(attachment, slots[i]);
    const Latency& l = by_slot[slots[i]];
    table.AddRow({Printable(target.name), ModuleText(target.module),
                  WithCommas(l.calls), Time(l.total_ns, view),
                  Time(l.AverageNs(), view), Time(l.QuantileNs(0.5), view),
                  Time(l.QuantileNs(0.99), view), Time(l.max_ns, view)});
  }
  std::string text = "\n";
  table.AppendTo(&text);
  if (shown < slots.size()) {
    absl::StrAppendFormat(&text, "… and %s more that were called (--top=0)\n",
                          WithCommas(slots.size() - shown));
  }
  if (view.histograms == 0) {
    const Latency all = SumOf(by_slot);
    absl::StrAppendFormat(&text, "\nall functions, %s, in ns:\n%s",
                          Count(all.calls, "call"), Histogram(all));
  }
  for (size_t i = 0;
       i < Shown(slots.size(), view.histograms) && view.histograms > 0; ++i) {
    absl::StrAppendFormat(&text, "\n%s, %s, in ns:\n%s",
                          Printable(TargetOfSlot(attachment, slots[i]).name),
                          Count(by_slot[slots[i]].calls, "call"),
                          Histogram(by_slot[slots[i]]));
  }
  return text;
}

std::string LatencySummary(const LatencyResult& result) {
  const Latency all = SumOf(result.by_slot);
  std::string text = absl::StrFormat("\n%s in %.2f s", Count(all.calls, "call"),
                                     result.seconds);
  if (const uint64_t unfinished = all.entries - all.calls; unfinished > 0) {
    absl::StrAppendFormat(&text,
                          "; %s more began: still running at the end, or the "
                          "return was missed",
                          WithCommas(unfinished));
  }
  text += "\n" + MissedText(result.missed, "hit");
  if (result.lost_entries + result.lost_returns > 0) {
    absl::StrAppendFormat(
        &text, "the pair lost %s (too many threads or too deep) and %s\n",
        Count(result.lost_entries, "call"),
        Count(result.lost_returns, "return"));
  }
  return text;
}

std::string LatencyJson(const ksweep::Attachment& attachment,
                        const LatencyResult& result, const LatencyView& view) {
  const std::vector<uint32_t> slots = CalledSlots(result.by_slot, view.sort);
  const ksweep::AttachReport report = attachment.Report();
  const Latency all = SumOf(result.by_slot);
  JsonWriter json;
  json.BeginObject();
  json.Key("attached").Number(report.attached);
  json.Key("links").Number(report.links);
  json.Key("kinds").BeginArray();
  for (const ksweep::KindReport& kind : report.kinds) {
    json.String(ksweep::KindName(kind.kind));
  }
  json.EndArray();
  json.Key("seconds").Decimal(result.seconds, 3);
  json.Key("unfinished").Number(all.entries - all.calls);
  json.Line();
  json.Key("all").BeginObject();
  WriteLatency(all, &json);
  json.EndObject();
  json.Line();
  json.Key("functions").BeginArray();
  for (size_t i = 0; i < Shown(slots.size(), view.top); ++i) {
    const ksweep::Target& target = TargetOfSlot(attachment, slots[i]);
    const Latency& latency = result.by_slot[slots[i]];
    json.Line();
    json.BeginObject();
    json.Key("name").String(target.name);
    json.Key("module");
    target.module.empty() ? json.Null() : json.String(target.module);
    json.Key("addr").Addr(target.addr);
    json.Key("unfinished").Number(latency.entries - latency.calls);
    WriteLatency(latency, &json);
    json.EndObject();
  }
  json.EndArray();
  json.Line();
  json.Key("missed").BeginObject();
  json.Key("link").Number(result.missed.by_link);
  json.Key("prog").Number(result.missed.by_prog);
  json.Key("lost_entries").Number(result.lost_entries);
  json.Key("lost_returns").Number(result.lost_returns);
  json.EndObject();
  json.EndObject();
  return json.text() + "\n";
}

}  // namespace examples
