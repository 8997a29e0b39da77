#include "selftests/bench/index_report.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace ksweep::bench {
namespace {

constexpr double kKib = 1024;
constexpr double kNsPerMs = 1e6;

BytesRow KernelRow(const KernelTableOf& kernel) {
  const KernelBytes bytes = kernel.table->bytes();
  return {
      kernel.label, bytes.total(),
      absl::StrFormat("names %d, markers %d, tokens %d, offsets %d, order %d",
                      bytes.names, bytes.markers, bytes.tokens, bytes.offsets,
                      bytes.seqs)};
}

BytesRow OurRow(std::string label, const SymbolIndex& index) {
  const IndexStats stats = index.Stats();
  const IndexPartStats& core = stats.core;
  return {
      std::move(label), core.bytes + stats.dictionary_bytes,
      absl::StrFormat("names %d, pages %d, locator %d, sides %d, dictionary %d",
                      core.name_bytes, core.page_bytes, core.locator_bytes,
                      core.side_bytes, stats.dictionary_bytes)};
}

// --- targets ---

struct BytesLimit {
  const char* source;
  double must;
  double stretch;
};
constexpr BytesLimit kBytesLimits[] = {
    {"linux-7.3.4", 0.46, 0.43},
    {"linux-6.12.95", 0.47, 0.43},
    {"linux-6.1.0", 0.70, 0.65},
};

// How many times as quick an answer has to be as the base of its table.
struct FactorLimit {
  const char* what;
  const char* way;
  const char* question;
  double must;
  double stretch;
};
constexpr FactorLimit kFactorLimits[] = {
    {"random lookup / 16:1", kOurs, "random", 18, 20},
    {"hot lookup / 16:1", kOurs, "hot", 13, 15},
    {"absent name / 16:1", kOurs, "absent", 16, 20},
    {"batch of 1,000 / 16:1", kOursInBatches, "by 1000", 34, 35},
    {"batch of 64,000 / 16:1", kOursInBatches, "by 64000", 34, 35},
    {"address to name / 256:1", kOurs, "address to name", 3.5, 6},
    {"iteration / 256:1", kOurs, "symbol in order", 4.5, 5},
    {"64,000 names, open index / sweep", "open index", "", 8, 0},
};

struct TimeLimit {
  const char* way;
  double must_ms;
  double stretch_ms;
};
constexpr TimeLimit kTimeLimits[] = {
    {"ksweep, built from text", 400, 150},
    {"ksweep, opened", 1, 0},
};

const TimeCell* FindCell(const IndexReport& report, const std::string& way,
                         const std::string& question) {
  for (const TimeTable& table : report.times) {
    if (const TimeCell* cell = table.Find(way, question)) return cell;
  }
  return nullptr;
}

// --- text ---

template <typename T>
void AddOnce(const T& value, std::vector<T>* list) {
  if (std::find(list->begin(), list->end(), value) == list->end()) {
    list->push_back(value);
  }
}

std::string CellText(const TimeCell* cell) {
  if (cell == nullptr) return absl::StrFormat("%20s", "");
  const int decimals = cell->factor < 0.1 ? 4 : cell->factor < 10 ? 2 : 1;
  const std::string factor = absl::StrFormat("(%.*fx)", decimals, cell->factor);
  if (cell->ns >= kNsPerMs) {
    return absl::StrFormat("%8.2f ms %8s", cell->ns / kNsPerMs, factor);
  }
  return absl::StrFormat("%11.1f %8s", cell->ns, factor);
}

std::string CellJson(const TimeCell& cell) {
  return absl::StrFormat(
      R"({"way": "%s", "question": "%s", "ns": %.2f, "min_ns": %.2f, "factor": %.4f})",
      cell.way.substr(cell.way.find_first_not_of(' ')), cell.question, cell.ns,
      cell.min_ns, cell.factor);
}

template <typename T, typename ToText>
std::string JsonList(const std::vector<T>& items, ToText to_text) {
  return "[" +
         absl::StrJoin(items, ",\n",
                       [&to_text](std::string* out, const T& item) {
                         *out += to_text(item);
                       }) +
         "]";
}

std::string ReportJson(const IndexReport& report) {
  const auto bytes_json = [](const BytesRow& row) {
    return absl::StrFormat(
        R"({"table": "%s", "bytes": %d, "ratio": %.4f, "parts": "%s"})",
        row.label.substr(row.label.find_first_not_of(' ')), row.bytes,
        row.ratio, row.parts);
  };
  const auto table_json = [](const TimeTable& table) {
    return absl::StrFormat(R"({"title": "%s", "base": "%s", "cells": %s})",
                           table.title, table.base,
                           JsonList(table.cells, CellJson));
  };
  return absl::StrFormat(
      R"({"source": "%s", "symbols": %d, "bytes": %s, "times": %s, "targets": %s})",
      report.label, report.symbols, JsonList(report.bytes, bytes_json),
      JsonList(report.times, table_json), JsonList(report.targets, TargetJson));
}

}  // namespace

std::vector<BytesRow> BytesOf(const Subject& subject) {
  std::vector<BytesRow> rows;
  for (const KernelTableOf& kernel : subject.kernel) {
    // How names are compared takes no bytes.
    if (kernel.form.compare == KernelCompare::kExpanded ||
        kernel.form.seqs != KernelSeqs::kBytes) {
      rows.push_back(KernelRow(kernel));
    }
  }
  rows.push_back(
      {"tree of all names", static_cast<uint64_t>(subject.tree_bytes), "heap"});
  rows.push_back(OurRow(kOurs, subject.index));
  BuildOptions options;
  options.own_dictionary = true;
  rows.push_back(
      OurRow("ksweep, own dictionary",
             ValueOrDie(SymbolIndex::FromText(subject.core_text, options))));
  for (BytesRow& row : rows) {
    row.ratio =
        static_cast<double>(row.bytes) / static_cast<double>(rows[0].bytes);
    row.more =
        static_cast<int64_t>(row.bytes) - static_cast<int64_t>(rows[0].bytes);
  }
  return rows;
}

std::vector<Target> IndexTargets(const IndexReport& report) {
  std::vector<Target> targets;
  for (const BytesLimit& limit : kBytesLimits) {
    if (limit.source != report.label) continue;
    for (const BytesRow& row : report.bytes) {
      if (row.label != kOurs) continue;
      targets.push_back(
          {"bytes / 256:1", row.ratio, limit.must, limit.stretch, ""});
    }
  }
  for (const FactorLimit& limit : kFactorLimits) {
    const TimeCell* cell = FindCell(report, limit.way, limit.question);
    if (cell == nullptr) continue;
    targets.push_back({limit.what, cell->factor, limit.must, limit.stretch,
                       "times as quick", /*at_least=*/true});
  }
  for (const TimeLimit& limit : kTimeLimits) {
    const TimeCell* cell = FindCell(report, limit.way, "");
    if (cell == nullptr) continue;
    targets.push_back({limit.way, cell->ns / kNsPerMs, limit.must_ms,
                       limit.stretch_ms, "ms"});
  }
  return targets;
}

std::string FormatBytes(const IndexReport& report) {
  std::string text = absl::StrFormat("%s, %d symbols of the core kernel\n",
                                     report.label, report.symbols);
  if (report.bytes.empty()) return text;
  absl::StrAppendFormat(&text, "  %-30s %10s %8s %10s  %s\n", "", "bytes",
                        "/ 256:1", "more KiB", "parts");
  for (const BytesRow& row : report.bytes) {
    absl::StrAppendFormat(&text, "  %-30s %10d %8.3f %+10.1f  %s\n", row.label,
                          row.bytes, row.ratio,
                          static_cast<double>(row.more) / kKib, row.parts);
  }
  for (const std::string& note : report.notes) text += "  " + note + "\n";
  return text;
}

std::string FormatTimes(const TimeTable& table) {
  if (table.cells.empty()) return "";
  std::vector<std::string> ways, questions;
  for (const TimeCell& cell : table.cells) {
    AddOnce(cell.way, &ways);
    AddOnce(cell.question, &questions);
  }
  std::string text =
      absl::StrFormat("  %s (times as quick as %s)\n", table.title, table.base);
  absl::StrAppendFormat(&text, "  %-30s", "");
  for (const std::string& question : questions) {
    absl::StrAppendFormat(&text, "%20s", question);
  }
  text += "\n";
  for (const std::string& way : ways) {
    absl::StrAppendFormat(&text, "  %-30s", way);
    for (const std::string& question : questions) {
      text += CellText(table.Find(way, question));
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

std::string ToJson(const std::vector<IndexReport>& reports) {
  return absl::StrFormat("{\"sources\": %s}\n", JsonList(reports, ReportJson));
}

}  // namespace ksweep::bench
