// Attaching and detaching once, timed.

#ifndef KSWEEP_SELFTESTS_BENCH_ATTACH_TIMING_H_
#define KSWEEP_SELFTESTS_BENCH_ATTACH_TIMING_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/attach.h"
#include "ksweep/attachment.h"
#include "ksweep/link.h"
#include "ksweep/resolve.h"
#include "selftests/bench/attach/amount.h"

namespace ksweep::bench {

struct Timing {
  uint64_t links = 0;
  uint64_t functions = 0;
  // Functions of all links, as the kernel counts; 0 before Linux 6.6.
  uint64_t in_links = 0;
  int64_t attach_ns = 0;
  int64_t detach_ns = 0;
};

// Waits a moment: the kernel does some of the work of a boot, of a load and of
// a detach later.
void Settle(const Amount& amount);

// What a link tells of its functions; 0 before Linux 6.6.
uint64_t AskForCount(int link_fd);

absl::StatusOr<Timing> TimeAttach(const Resolution& resolution,
                                  absl::Span<const KindProgram> programs,
                                  const AttachOptions& options);

// `cnt` links, which `make` makes one by one. Timing::functions is the
// caller's.
absl::StatusOr<Timing> TimeLinks(
    size_t cnt, absl::FunctionRef<absl::StatusOr<Link>(size_t)> make);

// Ok if the kernel counts `wanted` functions in the links, or does not count.
absl::Status CheckKernelCount(const Timing& timing, uint64_t wanted);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_ATTACH_TIMING_H_
