// Trying a kind on the kernel. Knows nothing of what was tried before.

#ifndef KSWEEP_LIB_ATTACH_FEATURES_FEATURE_PROBES_H_
#define KSWEEP_LIB_ATTACH_FEATURES_FEATURE_PROBES_H_

#include <cstdint>

#include "ksweep/features.h"
#include "ksweep/kernel_files.h"
#include "lib/attach/features/btf_marks.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/perf_sys.h"

namespace ksweep {

// kprobe.multi and kprobe.session: two calls, nothing is patched.
Feature TryKprobeMulti(BpfSys& sys, Kind kind);

// fentry.multi and fsession.multi: two calls, nothing is patched.
Feature TryTracingMulti(BpfSys& sys, Kind kind);

// fentry and fsession: attaches to a function for tests for a moment.
Feature TryTrampoline(BpfSys& sys, const BtfMarks& btf, Kind kind);

// kprobe: two files of sysfs and a call, nothing is patched.
Feature TryPerfKprobe(PerfSys& perf, const KernelFiles& files);

// The errno of attaching fentry to the function with BTF id `btf_id`; 0 if it
// was attached, and detached again.
int TryFentryOn(BpfSys& sys, uint32_t btf_id);

// True for the errnos that say "this kernel cannot".
bool IsNotSupported(int err);

// "EOPNOTSUPP".
std::string ErrnoName(int err);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_FEATURES_FEATURE_PROBES_H_
