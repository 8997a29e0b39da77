#include "lib/attach/programs/prepare_several.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

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
  return CheckDistinct(kinds);
}

// Why the kernel has no use for a program of `kind`; empty: it has. What could
// not be found out the attach will tell.
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

// What is to be loaded, and what not and why.
struct Choice {
  std::vector<KindProgram> programs;
  std::vector<AbsentKind> lacking;  // of the kernel

  // Of those that are loaded; null if there is none.
  const KindProgram* First() const {
    for (const KindProgram& program : programs) {
      if (program.absent.empty()) return &program;
    }
    return nullptr;
  }

  bool RunsAt(Role role) const {
    return std::any_of(programs.begin(), programs.end(),
                       [role](const KindProgram& program) {
                         return program.absent.empty() &&
                                (RoleOf(program.kind) == role ||
                                 RoleOf(program.kind) == Role::kBoth);
                       });
  }
};

Choice Choose(absl::Span<const WantedProgram> wanted, const KindFit* fit,
              Features& features) {
  Choice choice;
  for (const auto& [kind, prog] : wanted) {
    std::string absent = WhyAbsent(kind, fit, features);
    const KindProgram* const first = choice.First();
    if (!absent.empty()) {
      choice.lacking.push_back({kind, absent});
    } else if (first != nullptr && !GoTogether(first->kind, kind)) {
      absent = absl::StrFormat(
          "not beside %s, which comes first: one is for entry and return, the "
          "other for either",
          Av(KindName(first->kind)));
    }
    choice.programs.push_back({kind, prog, std::move(absent)});
  }
  return choice;
}

// Whether what the kernel lacks is made up for. For a session any program will
// do that the caller gave beside it.
absl::Status CheckMoments(const Choice& choice) {
  if (choice.First() == nullptr) return NoneLeft(choice.lacking);
  for (const AbsentKind& kind : choice.lacking) {
    const Role role = RoleOf(kind.kind);
    if (role == Role::kBoth || choice.RunsAt(role)) continue;
    return absl::UnimplementedError(absl::StrFormat(
        "nothing is left to run at the %s of functions%s",
        role == Role::kReturn ? "return" : "entry", List(choice.lacking)));
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
  Choice choice = Choose(programs, fit ? &*fit : nullptr, features);
  std::vector<KindProgram>& prepared = choice.programs;
  // Before any program is changed.
  status = CheckMoments(choice);
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
  return std::move(prepared);
}

absl::StatusOr<std::vector<KindProgram>> PreparePrograms(
    absl::Span<const WantedProgram> programs, const Resolution* resolution) {
  return PreparePrograms(programs, resolution, Features::Running());
}

}  // namespace ksweep
