// Which kind is the best for a program, a resolution and a kernel.

#ifndef KSWEEP_LIB_ATTACH_PROGRAMS_CHOOSE_KIND_H_
#define KSWEEP_LIB_ATTACH_PROGRAMS_CHOOSE_KIND_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ksweep/attach.h"
#include "ksweep/features.h"
#include "ksweep/kind.h"
#include "ksweep/resolve.h"

struct bpf_program;

namespace ksweep {

// What a program says about how it is to be attached.
struct ProgramShape {
  std::string name;
  std::string section;  // "kprobe.multi/vfs_*"
  uint32_t prog_type = 0;
  uint32_t attach_type = 0;
  // True once it is loaded or was prepared for a kind: then the types stay.
  // Before that PrepareProgram() makes them fit.
  bool fixed = false;
};

ProgramShape ShapeOf(const bpf_program& prog);

// How many targets there are for each kind.
struct KindFit {
  KindSet asked;  // kinds that were resolved for
  uint64_t target_cnt = 0;
  std::array<uint64_t, kKindCnt> fitting = {};  // by kind

  uint64_t FittingFor(Kind kind) const {
    return fitting[static_cast<size_t>(kind)];
  }
};

KindFit FitOf(const Resolution& resolution);

// The kinds that a program can be attached as, the best first. The section
// tells whether it wants entries, returns or both, and whether it reads
// arguments as only per-function fentry passes them; an unknown one is taken
// for a kprobe's.
//
//   SEC(…)                             kinds
//   kprobe, kprobe.multi, ksyscall, …  kprobe.multi, kprobe
//   kretprobe, kretprobe.multi, …      kretprobe.multi, kretprobe
//   kprobe.session                     kprobe.session
//   fentry.multi                       fentry.multi, fentry  (exit, session
//   too) fentry                             fentry                (exit,
//   session too)
//
// A fixed program has the one kind of its types, or none: one that was loaded
// for kprobe.multi must not become a single kprobe, its helpers would read what
// is not there.
std::vector<Kind> KindsFor(const ProgramShape& shape);

// The first of KindsFor() that some target fits and that the kernel does not
// say no to. `fit` null: nothing was resolved yet. The kernel is asked only
// where there is a choice, so about the last kind never: the attach itself will
// tell.
//
// FailedPrecondition if no kind is left, with what is against each.
absl::StatusOr<KindChoice> ChooseKind(const ProgramShape& shape,
                                      const KindFit* fit, Features& features);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_PROGRAMS_CHOOSE_KIND_H_
