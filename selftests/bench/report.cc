#include "selftests/bench/report.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace ksweep::bench {
namespace {

constexpr double kMb = 1e6;
constexpr double kMostMb = 2.0;

const Figures* FindFigures(const Cell& cell, const std::string& label) {
  for (const Figures& figures : cell.figures) {
    if (figures.label == label) return &figures;
  }
  return nullptr;
}

const Figures& KsweepFigures(const Cell& cell) {
  return *std::find_if(
      cell.figures.begin(), cell.figures.end(),
      [](const Figures& f) { return f.role == Way::Role::kKsweep; });
}

// On the running kernel the text is made while it is read, so what counts is
// the share that searching adds.
Target LiveTarget(const Cell& cell, double ratio) {
  constexpr uint32_t kFew = 10000;
  Target target = {"time / read floor", ratio, 1.3, 0, ""};
  if (cell.names == 0) return target;
  target.must = cell.names <= kFew ? 1.08 : 1.25;
  target.stretch = cell.names <= kFew ? 1.07 : 1.18;
  return target;
}

Target FileTarget(const Cell& cell, double ns_over) {
  constexpr uint32_t kFew = 10000;
  return cell.names <= kFew
             ? Target{"over the floor", ns_over, 15, 8, "ns/line"}
             : Target{"over the floor", ns_over, 30, 18, "ns/line"};
}

// How much less ksweep adds to the floor than `other`, turned round so that a
// target is an upper limit here, too.
Target ShareTarget(const Figures& ksweep, const Figures& other) {
  return {"share of binary search's time over the floor",
          ksweep.ns_over / other.ns_over, 1.0 / 4, 1.0 / 7, ""};
}

std::string Verdict(const Target& target) {
  if (!target.pass()) return "MISS";
  return target.stretch != 0 && target.Meets(target.stretch) ? "PASS (stretch)"
                                                             : "PASS";
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string FiguresJson(const Figures& f) {
  return absl::StrFormat(
      R"({"way": %s, "reps": %d, "ratio": %.4f, "min_ratio": %.4f, "ms": %.4f, "min_ms": %.4f, "ns_over_floor_per_line": %.3f, "peak_bytes": %d})",
      Quoted(f.label.substr(f.label.find_first_not_of(' '))), f.reps, f.ratio,
      f.min_ratio, f.ms, f.min_ms, f.ns_over, f.peak_bytes);
}

template <typename T, typename ToText>
std::string JsonList(const std::vector<T>& items, ToText to_text) {
  std::vector<std::string> texts;
  for (const T& item : items) texts.push_back(to_text(item));
  return "[" + absl::StrJoin(texts, ",\n") + "]";
}

std::string CellJson(const Cell& cell) {
  return absl::StrFormat(
      R"({"cell": %s, "names": %d, "name_bytes": %d, "answers": %d, "answer_bytes": %d, "same_answers": %s, "ways": %s, "targets": %s})",
      Quoted(cell.label), cell.names, cell.name_bytes, cell.answer_cnt,
      cell.answer_bytes, cell.same_answers ? "true" : "false",
      JsonList(cell.figures, FiguresJson), JsonList(cell.targets, TargetJson));
}

}  // namespace

std::string TargetJson(const Target& target) {
  return absl::StrFormat(
      R"({"what": %s, "value": %.4f, "must": %.4f, "stretch": %.4f, "unit": %s, "pass": %s})",
      Quoted(target.what), target.value, target.must, target.stretch,
      Quoted(target.unit), target.pass() ? "true" : "false");
}

std::vector<Target> TargetsFor(const Cell& cell, bool live) {
  const Figures& ksweep = KsweepFigures(cell);
  std::vector<Target> targets;
  if (live && (cell.names != 0 || cell.label == "*")) {
    targets.push_back(LiveTarget(cell, ksweep.ratio));
  }
  if (cell.names == 0) return targets;
  if (!live) targets.push_back(FileTarget(cell, ksweep.ns_over));
  const Figures* plain = FindFigures(cell, "binary search");
  constexpr uint32_t kMany = 10000;
  if (cell.names >= kMany && plain != nullptr) {
    targets.push_back(ShareTarget(ksweep, *plain));
  }
  const double beyond = static_cast<double>(ksweep.peak_bytes) -
                        static_cast<double>(cell.name_bytes);
  targets.push_back({"peak heap beyond one copy of the names and the answer",
                     (beyond - static_cast<double>(cell.answer_bytes)) / kMb,
                     kMostMb, 1.3, "MB"});
  return targets;
}

// Nobody waits an hour for the rescans of all names, so those of one name are
// multiplied.
std::vector<Target> TargetsFor(const std::vector<Cell>& cells) {
  std::vector<Target> targets;
  const Figures* rescan = nullptr;
  for (const Cell& cell : cells) {
    if (cell.names == 1) rescan = FindFigures(cell, "rescan");
    if (cell.names != kMostNames || rescan == nullptr) continue;
    targets.push_back(
        {absl::StrFormat(
             "%d names, share of the %.0f s that rescans would take",
             cell.names, rescan->ms * cell.names / 1000),
         KsweepFigures(cell).ms / (rescan->ms * cell.names), 1.0 / 20000, 0,
         ""});
  }
  return targets;
}

std::string FormatTarget(const Target& target) {
  std::string text =
      absl::StrFormat("  %s: %.3g%s%s, at %s %.3g", target.what, target.value,
                      target.unit.empty() ? "" : " ", target.unit,
                      target.at_least ? "least" : "most", target.must);
  if (target.stretch != 0) {
    absl::StrAppendFormat(&text, " (stretch %.3g)", target.stretch);
  }
  return text + ": " + Verdict(target) + "\n";
}

std::string FormatCell(const Cell& cell, const SourceReport& source) {
  std::string text = absl::StrFormat("%s, %d lines: %s, %d found", source.label,
                                     source.lines, cell.label, cell.answer_cnt);
  if (cell.names != 0) {
    absl::StrAppendFormat(&text, ", one copy of the names %.2f MB",
                          static_cast<double>(cell.name_bytes) / kMb);
  }
  absl::StrAppendFormat(&text, "\n  %-20s %9s %9s %9s %9s %9s %9s\n", "",
                        "/ floor", "min/min", "ms", "min ms", "ns/line",
                        "peak MB");
  for (const Figures& f : cell.figures) {
    absl::StrAppendFormat(&text,
                          "  %-20s %9.3f %9.3f %9.3f %9.3f %9.1f %9.2f%s\n",
                          f.label, f.ratio, f.min_ratio, f.ms, f.min_ms,
                          f.ns_over, static_cast<double>(f.peak_bytes) / kMb,
                          f.reps == 1 ? "  (run once)" : "");
  }
  for (const Target& target : cell.targets) text += FormatTarget(target);
  if (!cell.same_answers) text += "  ANSWERS DIFFER\n";
  return text + "\n";
}

std::string ToJson(const std::vector<SourceReport>& sources,
                   const std::vector<Target>& memory) {
  return absl::StrFormat(
      "{\"sources\": %s,\n\"memory\": %s}\n",
      JsonList(
          sources,
          [](const SourceReport& source) {
            return absl::StrFormat(
                R"({"source": %s, "lines": %d, "live": %s, "cells": %s, "targets": %s})",
                Quoted(source.label), source.lines,
                source.live ? "true" : "false",
                JsonList(source.cells, CellJson),
                JsonList(source.targets, TargetJson));
          }),
      JsonList(memory, TargetJson));
}

}  // namespace ksweep::bench
