#include <bpf/libbpf.h>

#include <optional>

#include "ksweep/attach.h"
#include "ksweep/features.h"
#include "lib/attach/programs/choose_kind.h"

namespace ksweep {

absl::StatusOr<KindChoice> PrepareProgram(bpf_program* prog, std::nullopt_t,
                                          const Resolution* resolution) {
  if (prog == nullptr) return absl::InvalidArgumentError("no program given");
  std::optional<KindFit> fit;
  if (resolution != nullptr) fit = FitOf(*resolution);
  absl::StatusOr<KindChoice> choice = ChooseKind(
      ShapeOf(*prog), fit.has_value() ? &*fit : nullptr, Features::Running());
  if (!choice.ok()) return choice.status();
  const absl::Status status =
      resolution == nullptr ? PrepareProgram(prog, choice->kind)
                            : PrepareProgram(prog, choice->kind, *resolution);
  if (!status.ok()) return status;
  return choice;
}

}  // namespace ksweep
