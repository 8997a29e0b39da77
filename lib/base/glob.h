// Globs on names of bytes: `*`, `?`, and classes `[a-c]`, `[!x]`, `[^x]`.

#ifndef KSWEEP_LIB_BASE_GLOB_H_
#define KSWEEP_LIB_BASE_GLOB_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace ksweep {

// True if `text` has a character that makes a pattern of it.
bool HasWildcard(std::string_view text);

// Where a pattern is none that GlobMatch() takes.
struct GlobFault {
  size_t position = 0;  // counted from 1
  std::string_view what;
};
std::optional<GlobFault> FindGlobFault(std::string_view pattern);

// InvalidArgument with the pattern and its fault, if it has one.
absl::Status CheckGlob(std::string_view pattern);

// Whether all of `text` matches `pattern`, which has passed CheckGlob(). Time
// O(pattern · text) whatever the number of stars; no recursion, no allocation.
bool GlobMatch(std::string_view pattern, std::string_view text);

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_GLOB_H_
