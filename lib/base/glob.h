// Globs on names of bytes: `*`, `?`, and classes `[a-c]`, `[!x]`, `[^x]`.

#ifndef KSWEEP_LIB_BASE_GLOB_H_
#define KSWEEP_LIB_BASE_GLOB_H_

#include <string_view>

#include "absl/status/status.h"

namespace ksweep {

// True if `text` has a character that makes a pattern of it.
bool HasWildcard(std::string_view text);

// Ok for a pattern that GlobMatch() takes; else InvalidArgument that names the
// position, counted from `offset` + 1.
absl::Status CheckGlob(std::string_view pattern, size_t offset = 0);

// Whether all of `text` matches `pattern`, which has passed CheckGlob(). Time
// O(pattern · text) whatever the number of stars; no recursion, no allocation.
bool GlobMatch(std::string_view pattern, std::string_view text);

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_GLOB_H_
