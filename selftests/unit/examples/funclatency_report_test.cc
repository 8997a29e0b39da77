#include "funclatency_report.h"

#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace examples {
namespace {

// Calls of the given times.
Latency LatencyOf(const std::vector<uint64_t>& times_ns) {
  Latency latency;
  for (const uint64_t ns : times_ns) {
    std::vector<uint64_t> words(kLatencyWords, 0);
    words[0] = words[1] = 1;
    words[2] = words[3] = ns;
    size_t bucket = 0;
    while (bucket + 1 < kBuckets && ns >> (bucket + 1) != 0) ++bucket;
    words[4 + bucket] = 1;
    latency.Add(words);
  }
  return latency;
}

struct QuantileCase {
  std::vector<uint64_t> times_ns;
  double part;
  uint64_t want;
};

TEST(Latency, Quantiles) {
  const QuantileCase kCases[] = {
      {{}, 0.5, 0},
      {{0}, 0.5, 0},
      {{1}, 0.99, 1},
      {{700}, 0.5, 700},         // never more than the longest
      {{600, 5000}, 0.5, 1023},  // the end of [512, 1K)
      {{600, 5000}, 0.99, 5000},
      {{600, 601, 602, 5000}, 0.75, 1023},
      {{600, 601, 602, 5000}, 0.76, 5000},
      {{uint64_t{1} << 50}, 0.5, (uint64_t{2} << 39) - 1},  // the last bucket
  };
  for (const QuantileCase& c : kCases) {
    EXPECT_EQ(LatencyOf(c.times_ns).QuantileNs(c.part), c.want)
        << c.times_ns.size() << " calls, " << c.part;
  }
}

TEST(Latency, AddsUpOverCpusAndTheLongestIsTheLongest) {
  Latency sum = LatencyOf({10, 20});
  sum.Add(LatencyOf({5}));
  EXPECT_EQ(sum.calls, 3u);
  EXPECT_EQ(sum.entries, 3u);
  EXPECT_EQ(sum.total_ns, 35u);
  EXPECT_EQ(sum.max_ns, 20u);
  EXPECT_EQ(sum.AverageNs(), 11u);
  EXPECT_EQ(sum.buckets[2], 1u);
  EXPECT_EQ(sum.buckets[3], 1u);
  EXPECT_EQ(sum.buckets[4], 1u);
}

TEST(Latency, SinceIsWhatCameLater) {
  const Latency before = LatencyOf({10});
  Latency now = before;
  now.Add(LatencyOf({12, 100}));
  const Latency since = now.Since(before);
  EXPECT_EQ(since.calls, 2u);
  EXPECT_EQ(since.total_ns, 112u);
  EXPECT_EQ(since.buckets[3], 1u);
  EXPECT_EQ(since.buckets[6], 1u);
  EXPECT_EQ(before.Since(before).calls, 0u);
  EXPECT_EQ(before.Since(before).AverageNs(), 0u);
}

struct UnitCase {
  std::string_view unit;
  double ns;  // 0: refused
};

TEST(LatencyView, Units) {
  constexpr UnitCase kCases[] = {{"ns", 1},  {"us", 1e3}, {"ms", 1e6},
                                 {"s", 1e9}, {"", 0},     {"US", 0},
                                 {"h", 0}};
  for (const UnitCase& c : kCases) {
    LatencyView view;
    const absl::Status status = SetUnit(c.unit, &view);
    EXPECT_EQ(status.ok(), c.ns > 0) << c.unit;
    if (!status.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(status));
      continue;
    }
    EXPECT_EQ(view.ns_per_unit, c.ns);
  }
}

TEST(LatencyView, SortOrders) {
  EXPECT_EQ(*ParseSortBy("total"), SortBy::kTotal);
  EXPECT_EQ(*ParseSortBy("calls"), SortBy::kCalls);
  EXPECT_EQ(*ParseSortBy("max"), SortBy::kMax);
  EXPECT_EQ(*ParseSortBy("avg"), SortBy::kAverage);
  for (const char* name : {"", "Total", "self"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseSortBy(name).status())) << name;
  }
}

}  // namespace
}  // namespace examples
