// bpf(2) with a meter.

#ifndef KSWEEP_LIB_ATTACH_METERED_SYS_H_
#define KSWEEP_LIB_ATTACH_METERED_SYS_H_

#include <cstddef>
#include <cstdint>

#include "lib/base/bpf_sys.h"

namespace ksweep {

// Passes calls on, counts them, and takes the time. Not thread-safe.
class MeteredBpfSys : public BpfSys {
 public:
  explicit MeteredBpfSys(BpfSys& sys) : sys_(sys) {}

  int Bpf(int cmd, void* attr, size_t size) override;

  uint32_t calls() const { return calls_; }
  int64_t ns() const { return ns_; }

 private:
  BpfSys& sys_;
  uint32_t calls_ = 0;
  int64_t ns_ = 0;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_METERED_SYS_H_
