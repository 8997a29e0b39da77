// The build id of a kernel: a note that the linker leaves in the image.

#ifndef KSWEEP_LIB_SOURCE_BUILD_ID_H_
#define KSWEEP_LIB_SOURCE_BUILD_ID_H_

#include <string>
#include <string_view>

#include "ksweep/kernel_files.h"

namespace ksweep {

// The bytes of the GNU build-id note among the ELF notes in `notes`, which are
// of this machine's byte order; empty if there is none.
std::string_view FindBuildId(std::string_view notes);

// That of the kernel; empty if it cannot be read.
std::string KernelBuildId(const KernelFiles& files);

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_BUILD_ID_H_
