// The doors to the kernel with a meter.

#ifndef KSWEEP_LIB_ATTACH_LINKING_METERED_SYS_H_
#define KSWEEP_LIB_ATTACH_LINKING_METERED_SYS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/base/bpf_sys.h"
#include "lib/base/clock.h"
#include "lib/base/perf_sys.h"

namespace ksweep {

// Calls, and the time in them: of calls at the same time the sum. Thread-safe.
class SysMeter {
 public:
  template <typename Call>
  int Measure(const Call& call) {
    const int64_t start = NowNs();
    const int result = call();
    ns_ += NowNs() - start;
    ++calls_;
    return result;
  }

  uint32_t calls() const { return calls_; }
  int64_t ns() const { return ns_; }

 private:
  std::atomic<uint32_t> calls_ = 0;
  std::atomic<int64_t> ns_ = 0;
};

// Passes calls on.
class MeteredBpfSys : public BpfSys {
 public:
  // Both have to outlive it.
  MeteredBpfSys(BpfSys& sys, SysMeter& meter) : sys_(sys), meter_(meter) {}

  int Bpf(int cmd, void* attr, size_t size) override {
    return meter_.Measure([&] { return sys_.Bpf(cmd, attr, size); });
  }

 private:
  BpfSys& sys_;
  SysMeter& meter_;
};

// The same; what asks for limits is not measured.
class MeteredPerfSys : public PerfSys {
 public:
  MeteredPerfSys(PerfSys& sys, SysMeter& meter) : sys_(sys), meter_(meter) {}

  int OpenEvent(perf_event_attr* attr) override {
    return meter_.Measure([&] { return sys_.OpenEvent(attr); });
  }
  int Ioctl(int fd, unsigned long request, unsigned long arg) override {
    return meter_.Measure([&] { return sys_.Ioctl(fd, request, arg); });
  }
  int GetFdLimit(FdLimit* limit) override { return sys_.GetFdLimit(limit); }
  int SetFdLimit(const FdLimit& limit) override {
    return sys_.SetFdLimit(limit);
  }
  int OpenFdCnt() override { return sys_.OpenFdCnt(); }

 private:
  PerfSys& sys_;
  SysMeter& meter_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LINKING_METERED_SYS_H_
