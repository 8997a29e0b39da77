#include "common/bpf_errors.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "absl/strings/str_format.h"
#include "ksweep/status.h"

namespace examples {
namespace {

// In the kernel only: an operation that the architecture or the configuration
// lacks.
constexpr int kKernelEnotsupp = 524;

int PrintLibbpf(libbpf_print_level level, const char* format, va_list args) {
  return level == LIBBPF_DEBUG ? 0 : vfprintf(stderr, format, args);
}

}  // namespace

void ShowLibbpfMessages(bool show) {
  libbpf_set_print(show ? PrintLibbpf : nullptr);
}

absl::Status LoadError(int err) {
  switch (err) {
    case EPERM:
      return absl::PermissionDeniedError(
          geteuid() != 0
              ? "the kernel refuses to load a BPF program: run this as root"
              : "the kernel refuses root to load a BPF program: a container, "
                "a seccomp filter or lockdown forbids it");
    case ENOSYS:
    case EOPNOTSUPP:
    case EINVAL:
      return absl::UnimplementedError(absl::StrFormat(
          "the kernel does not load kprobe programs (%s); it needs "
          "CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS",
          strerror(err)));
    default:
      return absl::InternalError(absl::StrFormat(
          "cannot load the BPF program (%s); --verbose shows libbpf's messages",
          strerror(err)));
  }
}

bool KernelCannotAttach(const absl::Status& status) {
  const int err = ksweep::ErrnoOf(status);
  return absl::IsUnimplemented(status) || absl::IsPermissionDenied(status) ||
         err == EPERM || err == ENOSYS || err == EOPNOTSUPP ||
         err == kKernelEnotsupp;
}

}  // namespace examples
