#include "lib/attach/metered_sys.h"

#include "lib/base/clock.h"

namespace ksweep {

int MeteredBpfSys::Bpf(int cmd, void* attr, size_t size) {
  const int64_t start = NowNs();
  const int result = sys_.Bpf(cmd, attr, size);
  ns_ += NowNs() - start;
  ++calls_;
  return result;
}

}  // namespace ksweep
