// Reads per-CPU maps.

#ifndef KSWEEP_EXAMPLES_COMMON_PERCPU_H_
#define KSWEEP_EXAMPLES_COMMON_PERCPU_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace examples {

// The first `count` elements of a BPF_MAP_TYPE_PERCPU_ARRAY of __u64, each
// added up over all CPUs.
absl::StatusOr<std::vector<uint64_t>> SumPerCpu(int map_fd, uint32_t count);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_PERCPU_H_
