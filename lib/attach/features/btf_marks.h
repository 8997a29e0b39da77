// What the kernel's BTF tells about its features.

#ifndef KSWEEP_LIB_ATTACH_FEATURES_BTF_MARKS_H_
#define KSWEEP_LIB_ATTACH_FEATURES_BTF_MARKS_H_

#include <cstdint>
#include <string>

#include "ksweep/kernel_files.h"

namespace ksweep {

struct BtfMarks {
  int err = 0;       // why there is none; 0: it was read
  std::string path;  // where it was looked for

  // Functions for trying trampolines on, with 1 and 7 arguments; 0: none.
  uint32_t one_arg_id = 0;
  uint32_t seven_args_id = 0;

  // Types that are compiled in only with the feature, unlike the enumerators
  // of attach types.
  bool has_kprobe_multi = false;
  bool has_session = false;
  bool has_tracing_multi = false;
};

// Reads sys/kernel/btf/vmlinux below the root of `files`: several megabytes.
BtfMarks ReadBtfMarks(const KernelFiles& files);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_FEATURES_BTF_MARKS_H_
