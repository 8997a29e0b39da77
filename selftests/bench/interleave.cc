#include "selftests/bench/interleave.h"

#include <time.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace ksweep::bench {

int64_t ThreadCpuNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle]
                                : (values[middle - 1] + values[middle]) / 2;
}

std::vector<Times> Interleave(const std::vector<Job>& jobs, int reps) {
  std::vector<size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(1);
  std::vector<Times> times(jobs.size());
  for (int rep = 0; rep < reps; ++rep) {
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i : order) {
      const int64_t start = ThreadCpuNs();
      jobs[i].run();
      times[i].push_back(static_cast<double>(ThreadCpuNs() - start) /
                         static_cast<double>(jobs[i].ops));
    }
  }
  return times;
}

double MedianRatio(const Times& a, const Times& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return Median(std::move(ratios));
}

}  // namespace ksweep::bench
