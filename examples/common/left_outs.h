// What a resolution left out and why, for people.

#ifndef KSWEEP_EXAMPLES_COMMON_LEFT_OUTS_H_
#define KSWEEP_EXAMPLES_COMMON_LEFT_OUTS_H_

#include <string>

#include "ksweep/resolve.h"

namespace examples {

// Omissions by reason, then requests without a target. Long groups are cut to
// a few rows, unless `all`.
void AppendLeftOuts(const ksweep::Resolution& resolution, bool all,
                    std::string* out);

// The notes of the statistics, one a line: fallbacks taken, damaged lines.
void AppendNotes(const ksweep::ResolveStats& stats, std::string* out);

// "full", "partial" or "hidden".
std::string_view AddressStateName(ksweep::AddressState state);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_LEFT_OUTS_H_
