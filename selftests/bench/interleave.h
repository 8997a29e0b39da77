// Jobs that take turns, so that other load on the machine meets all of them.

#ifndef KSWEEP_SELFTESTS_BENCH_INTERLEAVE_H_
#define KSWEEP_SELFTESTS_BENCH_INTERLEAVE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ksweep::bench {

// CPU time of this thread.
int64_t ThreadCpuNs();

// Of a list that is not empty.
double Median(std::vector<double> values);

struct Job {
  std::string label;
  uint64_t ops = 1;  // what one run does so many times
  std::function<void()> run;
};

// Nanoseconds for each op, one a repetition.
using Times = std::vector<double>;

// Runs all jobs once per repetition, in changing order.
std::vector<Times> Interleave(const std::vector<Job>& jobs, int reps);

// The median of a[i] / b[i].
double MedianRatio(const Times& a, const Times& b);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_INTERLEAVE_H_
