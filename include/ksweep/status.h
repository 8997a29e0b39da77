// The errno behind a status.

#ifndef KSWEEP_STATUS_H_
#define KSWEEP_STATUS_H_

#include "absl/status/status.h"

namespace ksweep {

// The errno that the kernel gave for the failed call that `status` is about;
// 0 if it is Ok or no call failed. Numbers outside of errno.h are possible:
// the kernel's ENOTSUPP is 524.
int ErrnoOf(const absl::Status& status);

}  // namespace ksweep

#endif  // KSWEEP_STATUS_H_
