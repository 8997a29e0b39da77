// A loaded program as it takes to load it once more: for the BTF of another
// module, or for another function.

#ifndef KSWEEP_LIB_ATTACH_PROGRAMS_PROGRAM_IMAGE_H_
#define KSWEEP_LIB_ATTACH_PROGRAMS_PROGRAM_IMAGE_H_

#include <linux/bpf.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/unique_fd.h"

struct bpf_program;

namespace ksweep {

struct ProgramImage {
  std::string name;
  // As they were loaded: relocated, and with the descriptors of maps in them.
  std::vector<bpf_insn> insns;
  uint32_t prog_type = 0;
  uint32_t attach_type = 0;
  uint32_t prog_flags = 0;
  bool gpl_compatible = false;
  // The maps in `insns`, if they are its own; else the BPF object's, which then
  // has to stay open.
  std::vector<UniqueFd> maps;
};

// Of a program that libbpf has loaded.
absl::StatusOr<ProgramImage> ReadProgramImage(BpfSys& sys,
                                              const bpf_program& prog);

// Has `image` keep its maps open by descriptors of its own, so that it outlives
// the BPF object.
absl::Status OwnMaps(ProgramImage& image);

// Ok if the program can be loaded again. Unimplemented if it takes what cannot
// be read back from libbpf: BTF of its own functions, as programs with
// callbacks do (bpf_loop(), bpf_timer_set_callback()), or kfuncs of modules.
absl::Status CheckReloadable(const ProgramImage& image);

// What a program is loaded for.
struct TrampolineTarget {
  uint32_t btf_id = 0;      // 0: none yet, its link will tell
  uint32_t btf_obj_fd = 0;  // of a module's BTF; 0: the core kernel's
};

// Loads it. An error has the kernel's errno, and ends in the last line that its
// verifier wrote. One call; after an error one more to have that line.
absl::StatusOr<UniqueFd> LoadImage(BpfSys& sys, const ProgramImage& image,
                                   const TrampolineTarget& target);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_PROGRAMS_PROGRAM_IMAGE_H_
