// The kernel's PMU for single kprobes, as sysfs describes it.

#ifndef KSWEEP_LIB_ATTACH_KINDS_KPROBE_PMU_H_
#define KSWEEP_LIB_ATTACH_KINDS_KPROBE_PMU_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ksweep/kernel_files.h"

namespace ksweep {

struct KprobePmu {
  uint32_t type = 0;              // perf_event_attr::type
  uint64_t retprobe_config = 1u;  // perf_event_attr::config of a kretprobe
};

// Reads sys/bus/event_source/devices/kprobe/{type,format/retprobe} below the
// root of `files`: two small files. Unimplemented if the first is not there,
// PermissionDenied if it cannot be read, DataLoss if it is no number.
//
// The PMU exists since Linux 4.17 with CONFIG_KPROBE_EVENTS.
absl::StatusOr<KprobePmu> ReadKprobePmu(const KernelFiles& files);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_KINDS_KPROBE_PMU_H_
