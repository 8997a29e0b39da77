#include <string>

#include "absl/strings/str_format.h"
#include "ksweep/attach.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {

std::string AttachReport::ToString() const {
  constexpr size_t kMaxLines = 10;
  std::string text = absl::StrFormat(
      "%s: attached %d function%s in %d link%s, %d refused; %d system call%s, "
      "%.1f ms\n",
      Av(KindName(kind)), attached, attached == 1 ? "" : "s", links,
      links == 1 ? "" : "s", refused.size(), syscalls, syscalls == 1 ? "" : "s",
      static_cast<double>(attach_ns) / 1e6);
  for (size_t i = 0; i < refused.size() && i < kMaxLines; ++i) {
    const RefusedFunction& r = refused[i];
    absl::StrAppendFormat(&text, "  refused %s: %s (%s)\n", r.function,
                          r.reason, ErrnoText(r.err));
  }
  if (refused.size() > kMaxLines) {
    absl::StrAppendFormat(&text, "  … and %d more refused\n",
                          refused.size() - kMaxLines);
  }
  return text;
}

}  // namespace ksweep
