#ifndef KSWEEP_LIB_RESOLVE_REFUSAL_H_
#define KSWEEP_LIB_RESOLVE_REFUSAL_H_

#include <string_view>

#include "ksweep/resolve.h"

namespace ksweep {

// Why something is left out.
struct Refusal {
  Reason reason = Reason::kNotTraceable;
  std::string_view detail;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_REFUSAL_H_
