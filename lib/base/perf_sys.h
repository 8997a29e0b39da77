// The one door to perf_event_open(2), and to the limits that stand before many
// descriptors. Tests put a fake behind it.

#ifndef KSWEEP_LIB_BASE_PERF_SYS_H_
#define KSWEEP_LIB_BASE_PERF_SYS_H_

#include <linux/perf_event.h>

#include <cstdint>

namespace ksweep {

// RLIMIT_NOFILE.
struct FdLimit {
  uint64_t soft = 0;
  uint64_t hard = 0;
};

// Every call returns what the kernel returns, or the negative errno.
// Thread-safe.
class PerfSys {
 public:
  virtual ~PerfSys() = default;

  // perf_event_open() for all processes, on the CPU that the thread runs on,
  // which is online for sure.
  virtual int OpenEvent(perf_event_attr* attr) = 0;

  virtual int Ioctl(int fd, unsigned long request, unsigned long arg) = 0;

  virtual int GetFdLimit(FdLimit* limit) = 0;
  virtual int SetFdLimit(const FdLimit& limit) = 0;

  // Descriptors that this process has open.
  virtual int OpenFdCnt() = 0;

  // The kernel. Lives for ever.
  static PerfSys& Kernel();
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_PERF_SYS_H_
