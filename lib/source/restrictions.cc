#include "lib/source/restrictions.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "lib/source/list_file.h"

namespace ksweep {
namespace {

std::string FirstWord(const std::string& text) {
  return text.substr(0, text.find_first_of(" \n"));
}

std::string_view LockdownHint(const KernelFiles& files) {
  absl::StatusOr<std::string> text =
      ReadSmallFile(files, KernelFile::kLockdown);
  if (!text.ok()) return "";
  switch (ParseLockdown(*text)) {
    case Lockdown::kIntegrity:
      return "; kernel lockdown is 'integrity'";
    case Lockdown::kConfidentiality:
      return "; kernel lockdown is 'confidentiality', which forbids it";
    case Lockdown::kNone:
    case Lockdown::kUnknown:
      return "";
  }
  return "";
}

}  // namespace

Lockdown ParseLockdown(std::string_view text) {
  const size_t open = text.find('[');
  const size_t close =
      text.find(']', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) {
    return Lockdown::kUnknown;
  }
  const std::string_view mode = text.substr(open + 1, close - open - 1);
  if (mode == "none") return Lockdown::kNone;
  if (mode == "integrity") return Lockdown::kIntegrity;
  if (mode == "confidentiality") return Lockdown::kConfidentiality;
  return Lockdown::kUnknown;
}

std::string ExplainHiddenAddresses(const KernelFiles& files) {
  absl::StatusOr<std::string> text =
      ReadSmallFile(files, KernelFile::kKptrRestrict);
  if (!text.ok()) {
    return "kallsyms shows zero addresses, and kernel.kptr_restrict cannot be "
           "read; set it to 0, or to 1 and have CAP_SYSLOG";
  }
  const std::string value = FirstWord(*text);
  if (value == "2") {
    return "kallsyms shows zero addresses because kernel.kptr_restrict is 2; "
           "set it to 0 or 1";
  }
  return absl::StrFormat(
      "kallsyms shows zero addresses to this process (kernel.kptr_restrict is "
      "%s); run with CAP_SYSLOG",
      value);
}

std::string ExplainMissingList(const KernelFiles& files) {
  return absl::StrFormat(
      "mount tracefs (mount -t tracefs tracefs /sys/kernel/tracing), run as "
      "root, and use a kernel with CONFIG_DYNAMIC_FTRACE%s",
      std::string(LockdownHint(files)));
}

}  // namespace ksweep
