// Whether it was the kernel: asked only after a failure.

#ifndef KSWEEP_LIB_ATTACH_EXPLAIN_H_
#define KSWEEP_LIB_ATTACH_EXPLAIN_H_

#include "absl/status/status.h"
#include "ksweep/features.h"
#include "ksweep/kind.h"

namespace ksweep {

// The error of an attach of `kind`, told to `features`. If its errno may mean
// that the kernel has no such kind, and it has none, it is Unimplemented with
// the reason, keeping text and errno; else as it was.
absl::Status ExplainFailure(const absl::Status& status, Kind kind,
                            Features& features);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_EXPLAIN_H_
