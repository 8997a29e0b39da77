// The smallest program of a type, for asking the kernel what it can do.

#ifndef KSWEEP_LIB_ATTACH_FEATURES_PROBE_PROGRAM_H_
#define KSWEEP_LIB_ATTACH_FEATURES_PROBE_PROGRAM_H_

#include <cstdint>

#include "lib/base/bpf_sys.h"
#include "lib/base/unique_fd.h"

namespace ksweep {

struct ProbeProgram {
  uint32_t prog_type = 0;
  uint32_t attach_type = 0;
  uint32_t attach_btf_id = 0;
};

// The program loaded, or why not.
struct LoadedProbe {
  UniqueFd fd;
  int err = 0;  // the kernel's errno
};

// Loads a program that returns 0. One call; more if signals interrupt it.
LoadedProbe LoadProbeProgram(BpfSys& sys, const ProbeProgram& program);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_FEATURES_PROBE_PROGRAM_H_
