// Figures and targets, as a table for people or as JSON.

#ifndef KSWEEP_SELFTESTS_BENCH_REPORT_H_
#define KSWEEP_SELFTESTS_BENCH_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "selftests/bench/measure.h"

namespace ksweep::bench {

// A number that should not be above `must`, or, if `at_least` is set, below it;
// `stretch` is better still.
struct Target {
  std::string what;
  double value = 0;
  double must = 0;
  double stretch = 0;  // 0: none
  std::string unit;
  bool at_least = false;

  bool Meets(double limit) const {
    return at_least ? value >= limit : value <= limit;
  }
  bool pass() const { return Meets(must); }
};

// One question put to one source.
struct Cell {
  std::string label;
  uint32_t names = 0;  // 0: globs
  uint64_t name_bytes = 0;
  uint64_t answer_cnt = 0;
  uint64_t answer_bytes = 0;
  bool same_answers = true;
  std::vector<Figures> figures;
  std::vector<Target> targets;
};

struct SourceReport {
  std::string label;
  uint64_t lines = 0;
  bool live = false;
  std::vector<Cell> cells;
  std::vector<Target> targets;  // that are about several cells
};

// The targets that hold for `cell`, and for cells together.
std::vector<Target> TargetsFor(const Cell& cell, bool live);
std::vector<Target> TargetsFor(const std::vector<Cell>& cells);

std::string FormatCell(const Cell& cell, const SourceReport& source);
std::string TargetJson(const Target& target);
std::string FormatTarget(const Target& target);
std::string ToJson(const std::vector<SourceReport>& sources,
                   const std::vector<Target>& memory);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_REPORT_H_
