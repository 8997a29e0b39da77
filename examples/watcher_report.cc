#include "watcher_report.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "common/json.h"
#include "common/table.h"

namespace examples {
namespace {

struct Row {
  std::string module;
  uint64_t times = 0;
  uint64_t slots = 0;
  uint64_t calls = 0;
};

// The most called first.
std::vector<Row> Rows(const SlotOwners& owners, const WatchResult& result) {
  std::map<std::string, Row> by_module;
  for (size_t slot = 0; slot < result.calls.size(); ++slot) {
    const std::string& module = owners.modules()[slot];
    Row& row = by_module[module];
    row.module = module;
    row.times = owners.Times(module);
    ++row.slots;
    row.calls += result.calls[slot];
  }
  std::vector<Row> rows;
  for (const auto& [module, row] : by_module) rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.calls > b.calls;
  });
  return rows;
}

std::string OwnerText(std::string_view module) {
  return module.empty() ? "vmlinux" : Printable(module);
}

uint64_t CountOf(const AttachedCounts& counts, const std::string& module) {
  const auto found = counts.find(module);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

AttachedCounts CountByModule(const ksweep::Attachment& attachment) {
  AttachedCounts counts;
  for (uint32_t slot = 0; slot < attachment.targets().size(); ++slot) {
    if (!attachment.IsAttached(slot)) continue;
    const uint32_t target = attachment.targets()[slot];
    const auto& targets = attachment.resolution().targets();
    ++counts[std::string(targets[target].module)];
  }
  return counts;
}

std::string ChangeLines(const AttachedCounts& before,
                        const AttachedCounts& after, std::string_view why) {
  AttachedCounts all = before;
  all.insert(after.begin(), after.end());
  std::string text;
  for (const auto& [module, unused] : all) {
    const uint64_t was = CountOf(before, module);
    const uint64_t is = CountOf(after, module);
    if (is > was) {
      absl::StrAppendFormat(&text, "+ %s: %s attached\n", OwnerText(module),
                            Count(is - was, "function"));
    } else if (is < was) {
      absl::StrAppendFormat(&text, "- %s: %s\n", OwnerText(module),
                            std::string(why));
    }
  }
  return text;
}

void SlotOwners::Learn(const ksweep::Attachment& attachment) {
  std::set<std::string> seen;
  const auto& targets = attachment.resolution().targets();
  for (size_t slot = modules_.size(); slot < attachment.targets().size();
       ++slot) {
    const uint32_t target = attachment.targets()[slot];
    modules_.emplace_back(targets[target].module);
    seen.insert(modules_.back());
  }
  for (const std::string& module : seen) ++times_[module];
}

uint64_t SlotOwners::Times(const std::string& module) const {
  const auto found = times_.find(module);
  return found == times_.end() ? 0 : found->second;
}

std::string WatchText(const SlotOwners& owners, const WatchResult& result) {
  std::string text = "\n";
  Table table("lrrr");
  table.AddRow({"MODULE", "TIMES", "SLOTS", "CALLS"});
  for (const Row& row : Rows(owners, result)) {
    table.AddRow({OwnerText(row.module), WithCommas(row.times),
                  WithCommas(row.slots), WithCommas(row.calls)});
  }
  table.AppendTo(&text);
  absl::StrAppendFormat(&text,
                        "\n%.1f s, %s at the module list, %s of kallsyms\n",
                        result.seconds, Count(result.polls, "look"),
                        Count(result.sweeps, "sweep"));
  return text;
}

std::string WatchJson(const SlotOwners& owners, const WatchResult& result) {
  JsonWriter json;
  json.BeginObject();
  json.Key("modules").BeginArray();
  for (const Row& row : Rows(owners, result)) {
    json.Line();
    json.BeginObject();
    json.Key("module");
    row.module.empty() ? json.Null() : json.String(row.module);
    json.Key("times").Number(row.times);
    json.Key("slots").Number(row.slots);
    json.Key("calls").Number(row.calls);
    json.EndObject();
  }
  json.EndArray();
  json.Line();
  json.Key("seconds").Decimal(result.seconds, 3);
  json.Key("polls").Number(result.polls);
  json.Key("sweeps").Number(result.sweeps);
  json.EndObject();
  return json.text() + "\n";
}

}  // namespace examples
