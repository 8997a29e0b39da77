// What a link call's errno means and what to do.

#ifndef KSWEEP_LIB_ATTACH_KINDS_ERRNO_HINTS_H_
#define KSWEEP_LIB_ATTACH_KINDS_ERRNO_HINTS_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace ksweep {

struct ErrnoHint {
  int err;
  const char* text;
  // What it means for one function, where it may be about one.
  const char* function = nullptr;
  // Where the general table means something else.
  std::optional<absl::StatusCode> code = std::nullopt;
};

// The entry of `table`, else that for calls of every kind; null if there is
// none.
const ErrnoHint* FindErrnoHint(absl::Span<const ErrnoHint> table, int err);

// "`what`: the hint: the errno's text", keeping the errno.
absl::Status HintedError(int err, std::string_view what,
                         absl::Span<const ErrnoHint> table);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_KINDS_ERRNO_HINTS_H_
