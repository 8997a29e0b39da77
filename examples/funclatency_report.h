// What funclatency prints.

#ifndef KSWEEP_EXAMPLES_FUNCLATENCY_REPORT_H_
#define KSWEEP_EXAMPLES_FUNCLATENCY_REPORT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tool.h"
#include "ksweep/attachment.h"

namespace examples {

// As in funclatency.bpf.c.
inline constexpr size_t kBuckets = 40;
inline constexpr size_t kLatencyWords = 4 + kBuckets;

// The calls of one function.
struct Latency {
  uint64_t entries = 0;  // begun
  uint64_t calls = 0;    // ended, which all others are about
  uint64_t total_ns = 0;
  uint64_t max_ns = 0;
  std::array<uint64_t, kBuckets> buckets = {};  // 2^n to 2^(n+1) - 1 ns

  // What a CPU has counted.
  void Add(absl::Span<const uint64_t> words);
  void Add(const Latency& other);
  // What came since `before`; the longest call is of the whole time.
  Latency Since(const Latency& before) const;

  uint64_t AverageNs() const { return calls == 0 ? 0 : total_ns / calls; }
  // Such that `part` of the calls, as 0.99, took at most this: by the buckets,
  // so up to twice the true time, and never more than the longest call.
  uint64_t QuantileNs(double part) const;
};

enum class SortBy { kTotal, kCalls, kMax, kAverage };

// "total", "calls", "max", "avg".
absl::StatusOr<SortBy> ParseSortBy(std::string_view name);

struct LatencyView {
  uint64_t top = 10;        // functions in the table; 0: all
  uint64_t histograms = 0;  // of the first functions; one over all if 0
  double ns_per_unit = 1e3;
  std::string unit = "us";
  SortBy sort = SortBy::kTotal;
};

// InvalidArgument unless it is "ns", "us", "ms" or "s".
absl::Status SetUnit(std::string_view unit, LatencyView* view);

struct LatencyResult {
  std::vector<Latency> by_slot;
  double seconds = 0;
  Missed missed;
  // Of a pair, see both_ends.bpf.h.
  uint64_t lost_entries = 0;
  uint64_t lost_returns = 0;
};

// A table of functions, then histograms.
std::string LatencyTable(const ksweep::Attachment& attachment,
                         const std::vector<Latency>& by_slot,
                         const LatencyView& view);

// How many calls, and which are not in the numbers and why.
std::string LatencySummary(const LatencyResult& result);

// One object:
//
//   attached, links, kinds, seconds, unfinished
//   all        {calls, total_ns, max_ns, buckets: [calls of 2^n ns, …]}
//   functions  the top [{name, module, addr, unfinished, and as in all}]
//   missed     {link, prog, lost_entries, lost_returns}
std::string LatencyJson(const ksweep::Attachment& attachment,
                        const LatencyResult& result, const LatencyView& view);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_FUNCLATENCY_REPORT_H_
