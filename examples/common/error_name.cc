#include "common/error_name.h"

#include <string.h>

#include "absl/strings/str_format.h"

namespace examples {
namespace {

struct KernelError {
  int err;
  const char* name;
};

// Linux v6.12, include/linux/errno.h: errors that do not leave the kernel.
constexpr KernelError kKernelErrors[] = {
    {512, "ERESTARTSYS"},
    {513, "ERESTARTNOINTR"},
    {514, "ERESTARTNOHAND"},
    {515, "ENOIOCTLCMD"},
    {516, "ERESTART_RESTARTBLOCK"},
    {517, "EPROBE_DEFER"},
    {518, "EOPENSTALE"},
    {519, "ENOPARAM"},
    {521, "EBADHANDLE"},
    {522, "ENOTSYNC"},
    {523, "EBADCOOKIE"},
    {524, "ENOTSUPP"},
    {525, "ETOOSMALL"},
    {526, "ESERVERFAULT"},
    {527, "EBADTYPE"},
    {528, "EJUKEBOX"},
    {529, "EIOCBQUEUED"},
    {530, "ERECALLCONFLICT"},
    {531, "ENOGRACE"},
};

}  // namespace

std::string ErrorName(int err) {
  for (const KernelError& known : kKernelErrors) {
    if (known.err == err) return known.name;
  }
  const char* name = strerrorname_np(err);
  return name != nullptr ? name : absl::StrFormat("error %d", err);
}

}  // namespace examples
