// A flame graph as an SVG picture that needs nothing else.

#ifndef KSWEEP_EXAMPLES_CALLTRACE_FLAME_GRAPH_H_
#define KSWEEP_EXAMPLES_CALLTRACE_FLAME_GRAPH_H_

#include <string>
#include <string_view>

#include "calltrace/profile.h"

namespace examples {

// A box for each call stack, above the box of its caller and as wide as its
// time; what is narrower than half a pixel is left out. A box tells its numbers
// under the mouse, and a click makes it as wide as the picture, in a browser.
// Functions of modules have another color than those of the core kernel.
std::string FlameGraphSvg(const Profile& profile, std::string_view title);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_CALLTRACE_FLAME_GRAPH_H_
