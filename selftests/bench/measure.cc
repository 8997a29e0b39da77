#include "selftests/bench/measure.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "selftests/bench/interleave.h"
#include "selftests/testing/alloc_counter.h"

namespace ksweep::bench {
namespace {

constexpr int64_t kSlowNs = 1'000'000'000;

int64_t TimeOf(const Way& way) {
  const int64_t start = ThreadCpuNs();
  way.run(nullptr);
  return ThreadCpuNs() - start;
}

int64_t PeakOf(const Way& way) {
  testing::ResetAllocStats();
  way.run(nullptr);
  return testing::GetAllocStats().peak_bytes;
}

// The times of a way, the shortest of them, and the floor's beside them.
struct WayTimes {
  std::vector<int64_t> own;
  std::vector<int64_t> floor;

  bool slow() const { return !own.empty() && own.back() > kSlowNs; }
};

Figures FiguresOf(const Way& way, const WayTimes& times, uint64_t lines) {
  constexpr double kNsPerMs = 1e6;
  std::vector<double> ratios, ms, over;
  for (size_t i = 0; i < times.own.size(); ++i) {
    const double own = static_cast<double>(times.own[i]);
    const double floor = static_cast<double>(times.floor[i]);
    ratios.push_back(own / floor);
    ms.push_back(own / kNsPerMs);
    over.push_back((way.reads ? own - floor : own) /
                   static_cast<double>(lines));
  }
  const auto shortest = [](const std::vector<int64_t>& list) {
    return static_cast<double>(*std::min_element(list.begin(), list.end()));
  };
  Figures figures;
  figures.label = way.label;
  figures.role = way.role;
  figures.reps = static_cast<int>(times.own.size());
  figures.ratio = Median(ratios);
  figures.min_ratio = shortest(times.own) / shortest(times.floor);
  figures.ms = Median(ms);
  figures.min_ms = shortest(times.own) / kNsPerMs;
  figures.ns_over = Median(over);
  return figures;
}

void RunRepetition(const std::vector<Way>& ways,
                   const std::vector<size_t>& order,
                   std::vector<WayTimes>* times) {
  std::vector<int64_t> now(ways.size(), -1);
  for (size_t w : order) {
    if (!(*times)[w].slow()) now[w] = TimeOf(ways[w]);
  }
  for (size_t w : order) {
    if (now[w] < 0) continue;
    (*times)[w].own.push_back(now[w]);
    (*times)[w].floor.push_back(now[0]);
  }
}

}  // namespace

std::vector<Figures> Measure(const std::vector<Way>& ways, uint64_t lines,
                             int reps) {
  std::vector<size_t> order(ways.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(1);
  std::vector<WayTimes> times(ways.size());
  for (int rep = 0; rep < reps; ++rep) {
    // So that none always runs behind the one that leaves the caches cold.
    std::shuffle(order.begin(), order.end(), random);
    RunRepetition(ways, order, &times);
  }
  std::vector<Figures> figures;
  for (size_t w = 0; w < ways.size(); ++w) {
    figures.push_back(FiguresOf(ways[w], times[w], lines));
    if (!times[w].slow()) figures.back().peak_bytes = PeakOf(ways[w]);
  }
  return figures;
}

}  // namespace ksweep::bench
