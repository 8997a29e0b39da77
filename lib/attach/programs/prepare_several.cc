#include "lib/attach/programs/prepare_several.h"

#include <bpf/libbpf.h>

#include <cerrno>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "lib/attach/linking/arrange.h"
#include "lib/attach/programs/choose_kind.h"
#include "lib/attach/programs/prepare.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

absl::Status CheckWanted(absl::Span<const WantedProgram> programs) {
  if (programs.empty()) return absl::InvalidArgumentError("no program given");
  std::vector<Kind> kinds;
  for (const WantedProgram& program : programs) {
    if (program.prog == nullptr) {
      return absl::InvalidArgumentError("no program given");
    }
    kinds.push_back(program.kind);
  }
  return CheckKinds(kinds);
}

// Why a program of `kind` is not to be loaded; empty: it is. What could not be
// found out the attach will tell.
std::string WhyAbsent(Kind kind, const KindFit* fit, Features& features) {
  // The kernel wants to know one of its functions at load.
  const bool needs_target = NeedsBtf(kind) && !IsTracingMulti(kind);
  if (needs_target && fit != nullptr && fit->FittingFor(kind) == 0) {
    return "no target fits";
  }
  const Feature feature = features.Find(kind);
  return feature.support == Support::kNo ? feature.why : "";
}

// "; fentry.multi: needs …", for each.
std::string List(absl::Span<const AbsentKind> absent) {
  std::string text;
  for (const AbsentKind& kind : absent) {
    absl::StrAppendFormat(&text, "; %s: %s", Av(KindName(kind.kind)), kind.why);
  }
  return text;
}

// Whether every moment that was asked for has a program left.
absl::Status CheckMoments(absl::Span<const KindProgram> programs) {
  std::vector<AbsentKind> absent;
  for (const KindProgram& program : programs) {
    if (!program.absent.empty())
      absent.push_back({program.kind, program.absent});
  }
  if (absent.size() == programs.size()) return NoneLeft(absent);
  for (const AbsentKind& kind : absent) {
    bool has_other = false;
    for (const KindProgram& program : programs) {
      has_other |=
          program.absent.empty() && RoleOf(program.kind) == RoleOf(kind.kind);
    }
    if (has_other) continue;
    return absl::UnimplementedError(absl::StrFormat(
        "nothing is left to run at the %s of functions%s",
        RoleOf(kind.kind) == Role::kReturn ? "return" : "entry", List(absent)));
  }
  return absl::OkStatus();
}

// `prog` stays what it is, and is not loaded.
absl::Status LeaveUnloaded(bpf_program* prog) {
  const int err = bpf_program__set_autoload(prog, false);
  if (err == 0) return absl::OkStatus();
  return ErrnoStatus(-err, absl::StrFormat("leaving program '%s' unloaded",
                                           bpf_program__name(prog)));
}

}  // namespace

absl::Status NoneLeft(absl::Span<const AbsentKind> absent) {
  return absl::UnimplementedError(absl::StrFormat(
      "none of the kinds can be attached on this kernel%s", List(absent)));
}

absl::StatusOr<std::vector<KindProgram>> PreparePrograms(
    absl::Span<const WantedProgram> programs, const Resolution* resolution,
    Features& features) {
  absl::Status status = CheckWanted(programs);
  if (!status.ok()) return status;
  std::optional<KindFit> fit;
  if (resolution != nullptr) fit = FitOf(*resolution);
  std::vector<KindProgram> prepared;
  for (const WantedProgram& wanted : programs) {
    prepared.push_back(
        {wanted.kind, wanted.prog,
         WhyAbsent(wanted.kind, fit ? &*fit : nullptr, features)});
  }
  // Before any program is changed.
  status = CheckMoments(prepared);
  for (size_t i = 0; i < programs.size() && status.ok(); ++i) {
    const auto& [kind, prog] = programs[i];
    if (!prepared[i].absent.empty()) {
      status = LeaveUnloaded(prog);
    } else if (resolution == nullptr) {
      status = PrepareProgram(prog, kind);
    } else {
      status = PrepareProgram(prog, kind, *resolution);
    }
  }
  if (!status.ok()) return status;
  return prepared;
}

absl::StatusOr<std::vector<KindProgram>> PreparePrograms(
    absl::Span<const WantedProgram> programs, const Resolution* resolution) {
  return PreparePrograms(programs, resolution, Features::Running());
}

}  // namespace ksweep
