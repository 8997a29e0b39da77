// What the kernel restricts, for messages that explain a failure. Never a
// reason not to try.

#ifndef KSWEEP_LIB_SOURCE_RESTRICTIONS_H_
#define KSWEEP_LIB_SOURCE_RESTRICTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "ksweep/kernel_files.h"

namespace ksweep {

enum class Lockdown : uint8_t { kUnknown, kNone, kIntegrity, kConfidentiality };

// Reads "none [integrity] confidentiality"; the bracketed one is in force.
Lockdown ParseLockdown(std::string_view text);

// A sentence with the sysctl's value and the remedy, about zero addresses.
std::string ExplainHiddenAddresses(const KernelFiles& files);

// A sentence with mount, privilege and lockdown advice, about a tracefs list.
std::string ExplainMissingList(const KernelFiles& files);

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_RESTRICTIONS_H_
