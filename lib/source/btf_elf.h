// BTF in the section of an ELF file, as in a vmlinux or a module on disk.

#ifndef KSWEEP_LIB_SOURCE_BTF_ELF_H_
#define KSWEEP_LIB_SOURCE_BTF_ELF_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace ksweep {

bool IsElf(std::string_view bytes);

// The bytes of the section `.BTF`. NotFound if there is none;
// FailedPrecondition if its ids are not those of the running kernel, because
// it was made against a base of its own (`.BTF.base`); InvalidArgument if the
// file is damaged.
absl::StatusOr<std::string> BtfOfElf(std::string_view bytes);

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_BTF_ELF_H_
