// Several programs for one attachment, of which the kernel may lack some kinds.

#ifndef KSWEEP_LIB_ATTACH_PROGRAMS_PREPARE_SEVERAL_H_
#define KSWEEP_LIB_ATTACH_PROGRAMS_PREPARE_SEVERAL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/attach.h"
#include "ksweep/features.h"

namespace ksweep {

// As PreparePrograms(), of the kernel that `features` asks.
absl::StatusOr<std::vector<KindProgram>> PreparePrograms(
    absl::Span<const WantedProgram> programs, const Resolution* resolution,
    Features& features);

// The error for programs of which none is left, with what is against each.
absl::Status NoneLeft(absl::Span<const AbsentKind> absent);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_PROGRAMS_PREPARE_SEVERAL_H_
