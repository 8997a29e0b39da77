// Links of one function each, made on several threads: what takes the time is
// waiting for the kernel.

#ifndef KSWEEP_LIB_ATTACH_LINKING_PARALLEL_LINKS_H_
#define KSWEEP_LIB_ATTACH_LINKING_PARALLEL_LINKS_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/attachment.h"
#include "ksweep/link.h"
#include "lib/base/clock.h"

namespace ksweep {

// Makes links number 0 to cnt - 1, in this order but several at a time. One
// thread takes them; the order in which it gets them is theirs.
class ParallelLinks {
 public:
  // `make` is called with a number, on any of `threads` threads at once; with
  // 1, or if the process may have no more threads, on the taker's.
  // `now` is a clock in nanoseconds, asked by each of them.
  ParallelLinks(size_t cnt, uint32_t threads,
                std::function<absl::StatusOr<Link>(size_t)> make,
                std::function<int64_t()> now = NowNs);
  // Waits for what is under way, begins no more, and closes what was not taken.
  ~ParallelLinks();
  ParallelLinks(const ParallelLinks&) = delete;
  ParallelLinks& operator=(const ParallelLinks&) = delete;

  // The next one, once it is there. At most `cnt` times.
  absl::StatusOr<Link> Take();

  // Of what was made so far.
  ThreadReport Report();

 private:
  void Work();
  absl::StatusOr<Link> MakeTimed(size_t index);

  const std::function<absl::StatusOr<Link>(size_t)> make_;
  const std::function<int64_t()> now_;
  const int64_t start_ns_;
  size_t taken_ = 0;
  std::vector<std::thread> threads_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // All of these with mutex_ held.
  bool stopped_ = false;
  size_t begun_ = 0;
  ThreadReport report_;
  std::vector<std::optional<absl::StatusOr<Link>>> made_;
};

// Adds what came of `more` links to `sum`.
void AddReport(const ThreadReport& more, ThreadReport* sum);

// Closes `links`, which are empty then, on up to `threads` threads. The first
// error; all are closed whatever happens to one.
absl::Status CloseLinks(std::vector<Link>& links, uint32_t threads);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LINKING_PARALLEL_LINKS_H_
