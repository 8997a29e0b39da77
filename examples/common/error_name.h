// Names of errors.

#ifndef KSWEEP_EXAMPLES_COMMON_ERROR_NAME_H_
#define KSWEEP_EXAMPLES_COMMON_ERROR_NAME_H_

#include <string>

namespace examples {

// "ENOENT", also of the kernel's own errors, as "ERESTARTSYS"; "error 4000" for
// a number without a name.
std::string ErrorName(int err);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_ERROR_NAME_H_
