// From errno to a status that keeps it.

#ifndef KSWEEP_LIB_BASE_ERRNO_STATUS_H_
#define KSWEEP_LIB_BASE_ERRNO_STATUS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "ksweep/status.h"

namespace ksweep {

// The kernel's ENOTSUPP, which is not in errno.h: an operation that the
// architecture or the configuration lacks.
inline constexpr int kKernelEnotsupp = 524;

// "Permission denied", also for the kernel's own numbers. Thread-safe.
std::string ErrnoText(int err);

// The code that fits `err`: the one table from errno to meaning.
absl::StatusCode CodeOfErrno(int err);

// A status with `message`, followed by the errno's text, that ErrnoOf() reads
// back. `err` has to be taken from errno right at the call.
absl::Status ErrnoStatus(int err, std::string_view message);

// The same with another code than the table's, where the caller knows better.
absl::Status ErrnoStatus(int err, absl::StatusCode code,
                         std::string_view message);

// `status` with `text` in front of its message; code and errno stay.
absl::Status Annotate(const absl::Status& status, std::string_view text);

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_ERRNO_STATUS_H_
