// std::string_view to Abseil's and back. On Debian 12 and 13 Abseil's is a type
// of its own without a conversion; elsewhere both are the same.

#ifndef KSWEEP_LIB_BASE_ABSEIL_H_
#define KSWEEP_LIB_BASE_ABSEIL_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace ksweep {

inline absl::string_view Av(std::string_view text) {
  return {text.data(), text.size()};
}

inline std::string_view Sv(absl::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_ABSEIL_H_
