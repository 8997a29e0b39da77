// What the kernel asks of a function before it puts a BPF trampoline on it.

#ifndef KSWEEP_LIB_RESOLVE_BTF_RULES_H_
#define KSWEEP_LIB_RESOLVE_BTF_RULES_H_

#include <optional>
#include <string_view>

#include "absl/types/span.h"
#include "ksweep/resolve.h"
#include "lib/base/arena.h"
#include "lib/resolve/refusal.h"
#include "lib/source/btf.h"

namespace ksweep {

// A function of the core kernel on which no trampoline is let, or none that
// runs at its return.
struct TraceDeny {
  std::string_view name;
  std::string_view reason;
  bool only_at_return = false;
};

// Sorted by name.
absl::Span<const TraceDeny> TraceDenyList();

// Why no program of `kind` goes on a core function of that name.
std::optional<Refusal> RefuseTraceName(std::string_view name, Kind kind);

// Why no program of `kind` goes on a function with that prototype; `text` for
// details that are made up.
std::optional<Refusal> RefusePrototype(const BtfPrototype& proto, Kind kind,
                                       const TraceLimits& limits, Arena* text);

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_BTF_RULES_H_
