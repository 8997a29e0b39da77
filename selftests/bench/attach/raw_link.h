// Links made without Attach(), as other tools make them.

#ifndef KSWEEP_SELFTESTS_BENCH_ATTACH_RAW_LINK_H_
#define KSWEEP_SELFTESTS_BENCH_ATTACH_RAW_LINK_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/kind.h"
#include "ksweep/link.h"

struct bpf_program;

namespace ksweep::bench {

// One link of a fprobe kind, with cookies. Attach() takes names only where the
// kernel hides addresses.
absl::StatusOr<Link> LinkByName(const bpf_program* prog, Kind kind,
                                absl::Span<const std::string_view> names);

// The same for one function by its start.
absl::StatusOr<Link> LinkByAddress(const bpf_program* prog, Kind kind,
                                   uint64_t addr);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_ATTACH_RAW_LINK_H_
