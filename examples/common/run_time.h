// What BPF programs cost: how often and how long they ran.

#ifndef KSWEEP_EXAMPLES_COMMON_RUN_TIME_H_
#define KSWEEP_EXAMPLES_COMMON_RUN_TIME_H_

#include <cstdint>

#include "absl/types/span.h"
#include "ksweep/attach.h"

namespace examples {

struct RunTime {
  uint64_t runs = 0;
  uint64_t ns = 0;
};

// While it lives the kernel measures all BPF programs of the machine, which
// makes each run some tens of nanoseconds longer. Since Linux 5.8; before, and
// without CAP_SYS_ADMIN, the numbers stay 0.
class RunTimeMeter {
 public:
  RunTimeMeter();
  RunTimeMeter(const RunTimeMeter&) = delete;
  RunTimeMeter& operator=(const RunTimeMeter&) = delete;
  ~RunTimeMeter();

  // The sum over `programs`, since they were loaded.
  static RunTime Read(absl::Span<const ksweep::KindProgram> programs);

 private:
  int fd_;
};

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_RUN_TIME_H_
