// What is measured of one subject, and what comes out.

#ifndef KSWEEP_SELFTESTS_BENCH_INDEX_JOBS_H_
#define KSWEEP_SELFTESTS_BENCH_INDEX_JOBS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "selftests/bench/index_subject.h"
#include "selftests/bench/interleave.h"

namespace ksweep::bench {

// One cell of a table of times: nanoseconds an op, and how many times as quick
// as the base.
struct TimeCell {
  std::string way;
  std::string question;
  Times times;
  double ns = 0;      // median
  double min_ns = 0;  // shortest
  double factor = 0;  // median of those of each repetition
};

struct TimeTable {
  std::string title;
  std::string base;  // what the factors are to
  std::vector<TimeCell> cells;

  const TimeCell* Find(const std::string& way,
                       const std::string& question) const;
};

// Labels that the targets are about.
inline constexpr char kOurs[] = "ksweep";
inline constexpr char kOursInBatches[] = "ksweep, in batches";

// Checks the answers of every way to every question; false, and a line on
// stderr for each that is wrong.
bool CheckAnswers(const Subject& subject);

// Names to addresses, to the 16:1 table.
TimeTable MeasureLookups(const Subject& subject, int reps);
// Addresses to names, and all symbols in order, to the 256:1 table.
TimeTable MeasureOthers(const Subject& subject, int reps);
// Building, saving and opening, in ns a time, to making the kernel's table.
TimeTable MeasureLife(const Subject& subject, int reps);
// BTF ids to addresses, to addresses beside BTF. No cells if the source has no
// BTF.
TimeTable MeasureBtf(const Subject& subject, int reps);
// 64,000 names of the running kernel, to a sweep.
TimeTable MeasureBatch(const Source& live, int reps);

// The names-to-addresses job of `way` alone, for callgrind_gate.
Job CountedJob(const Subject& subject, const std::string& way, uint64_t cnt);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_INDEX_JOBS_H_
