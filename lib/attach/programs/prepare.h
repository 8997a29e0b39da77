// What the kernel wants of a program for a kind.

#ifndef KSWEEP_LIB_ATTACH_PROGRAMS_PREPARE_H_
#define KSWEEP_LIB_ATTACH_PROGRAMS_PREPARE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ksweep/kind.h"

struct bpf_program;

namespace ksweep {

// A kind in the numbers of bpf(2).
struct KindAbi {
  Kind kind = Kind::kKprobeMulti;
  uint32_t prog_type = 0;
  uint32_t attach_type = 0;  // of the link, and expected by the program
  uint32_t link_flags = 0;   // link_create.kprobe_multi.flags
};

const KindAbi& AbiOf(Kind kind);

// True if nobody chose a kind for the program yet. What the section name
// stands for is no choice: PrepareProgram() replaces it.
bool IsUnprepared(const bpf_program& prog);

// Ok if `prog` is loaded, and for the kind; else FailedPrecondition. The kernel
// would only say EINVAL.
absl::Status CheckProgram(const bpf_program& prog, const KindAbi& abi);

// True for the kinds whose programs are loaded without a function.
constexpr bool IsTracingMulti(Kind kind) { return kind >= Kind::kFentryMulti; }

// True for the kinds with a link for each function.
constexpr bool IsOneByOne(Kind kind) {
  return kind >= Kind::kKprobe && kind <= Kind::kFsession;
}

// Whether it is in a section of sleepable programs, as SEC("fentry.s/…").
bool IsSleepable(const bpf_program& prog);

// The kind among `kinds` that `prog` was prepared for, the first if there are
// several. FailedPrecondition, with what it is and what they need, if none.
absl::StatusOr<Kind> KindOfProgram(const bpf_program& prog, KindSet kinds);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_PROGRAMS_PREPARE_H_
