// Reads per-CPU maps.

#ifndef KSWEEP_EXAMPLES_COMMON_PERCPU_H_
#define KSWEEP_EXAMPLES_COMMON_PERCPU_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace examples {

// Called for each element and each CPU with what the CPU has of it.
using PerCpuVisitor =
    absl::FunctionRef<void(uint32_t index, absl::Span<const uint64_t> value)>;

// The first `count` elements of a BPF_MAP_TYPE_PERCPU_ARRAY, whose values are
// `words` numbers of 64 bits, in order.
absl::Status ReadPerCpu(int map_fd, uint32_t count, size_t words,
                        PerCpuVisitor visit);

// The same for values of one number, each added up over all CPUs.
absl::StatusOr<std::vector<uint64_t>> SumPerCpu(int map_fd, uint32_t count);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_PERCPU_H_
