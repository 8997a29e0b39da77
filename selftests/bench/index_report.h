// Figures of the symbol index and its targets, as tables for people or as JSON.

#ifndef KSWEEP_SELFTESTS_BENCH_INDEX_REPORT_H_
#define KSWEEP_SELFTESTS_BENCH_INDEX_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "selftests/bench/index_jobs.h"
#include "selftests/bench/report.h"

namespace ksweep::bench {

// What one table of symbols takes.
struct BytesRow {
  std::string label;
  uint64_t bytes = 0;
  std::string parts;  // of them, in words
  double ratio = 0;   // to the kernel's 256:1 table
  int64_t more = 0;   // than that
};

struct IndexReport {
  std::string label;
  uint64_t symbols = 0;
  std::vector<BytesRow> bytes;
  std::vector<std::string> notes;
  std::vector<TimeTable> times;
  std::vector<Target> targets;
};

std::vector<BytesRow> BytesOf(const Subject& subject);

// What holds for the source that `report` is about.
std::vector<Target> IndexTargets(const IndexReport& report);

std::string FormatBytes(const IndexReport& report);
std::string FormatTimes(const TimeTable& table);
std::string ToJson(const std::vector<IndexReport>& reports);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_INDEX_REPORT_H_
