// What attach_bench prints: each outcome as it comes, for people or as a part
// of one JSON object.

#ifndef KSWEEP_SELFTESTS_BENCH_ATTACH_REPORT_H_
#define KSWEEP_SELFTESTS_BENCH_ATTACH_REPORT_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace ksweep::bench {

class Report {
 public:
  // Prints which kernel and which libbpf it is.
  explicit Report(bool json);
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  ~Report();

  // What is added from now on is in the array `name` of the JSON object.
  void Begin(std::string_view name);

  // For people only.
  void AddHeading(std::string_view text);

  void Add(std::string_view text, std::string_view json);

 private:
  const bool json_;
  bool in_array_ = false;
  bool first_ = true;
};

double Seconds(int64_t ns);

// Says what failed and why; returns false.
bool Fail(std::string_view what, const absl::Status& status);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_ATTACH_REPORT_H_
