#include "lib/base/bpf_sys.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace ksweep {
namespace {

class KernelBpfSys : public BpfSys {
 public:
  int Bpf(int cmd, void* attr, size_t size) override {
    const long result = syscall(SYS_bpf, cmd, attr, size);
    return result < 0 ? -errno : static_cast<int>(result);
  }
};

}  // namespace

BpfSys& BpfSys::Kernel() {
  static KernelBpfSys kernel;
  return kernel;
}

}  // namespace ksweep
