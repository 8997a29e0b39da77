// What libbpf and the kernel say when they refuse.

#ifndef KSWEEP_EXAMPLES_COMMON_BPF_ERRORS_H_
#define KSWEEP_EXAMPLES_COMMON_BPF_ERRORS_H_

#include "absl/status/status.h"

namespace examples {

inline constexpr int kExitCannotAttach = 3;

// Lets libbpf's own messages through to stderr, or not.
void ShowLibbpfMessages(bool show);

// Why a BPF object could not be opened or loaded: cause and remedy. `err` is
// an errno.
absl::Status LoadError(int err);

// The kernel, not the request, is in the way, says a failed load or attach.
bool KernelCannotAttach(const absl::Status& status);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_BPF_ERRORS_H_
