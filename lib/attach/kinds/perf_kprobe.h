// One program on one function as a perf-event kprobe: the last resort, which
// every kernel has, at one descriptor and about 50 ms of detaching for each
// function.

#ifndef KSWEEP_LIB_ATTACH_KINDS_PERF_KPROBE_H_
#define KSWEEP_LIB_ATTACH_KINDS_PERF_KPROBE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ksweep/kind.h"
#include "ksweep/link.h"
#include "lib/attach/kinds/kprobe_pmu.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/perf_sys.h"
#include "lib/base/unique_fd.h"

namespace ksweep {

// Descriptors that stay open for each function, in both forms: the link holds
// its perf event, which needs none of its own (Linux v5.15,
// kernel/bpf/syscall.c, struct bpf_perf_link).
inline constexpr uint64_t kFdsPerPerfKprobe = 1;

// One function. The views have to outlive the call only.
struct PerfKprobeCall {
  Kind kind = Kind::kKprobe;  // or kKretprobe
  // A kprobe program loaded without attach type: the kernel refuses one for
  // kprobe.multi.
  int prog_fd = -1;
  // Start of the function; 0: where the kernel hides addresses, by name.
  uint64_t addr = 0;
  std::string_view name;
  std::string_view module;  // empty: the core kernel
  uint64_t cookie = 0;
};

// Makes perf kprobes. Not thread-safe; threads may have one each.
class PerfKprobes {
 public:
  // `bpf` and `perf` have to outlive it, but not its links.
  PerfKprobes(BpfSys& bpf, PerfSys& perf, const KprobePmu& pmu)
      : bpf_(bpf), perf_(perf), pmu_(pmu) {}

  // Opens the event and attaches the program: two calls. After an error
  // nothing is attached or open. The descriptor in the Link is a BPF link's, or
  // where the kernel has none for perf events (before Linux 5.15) the perf
  // event's own, which ends the attachment alike.
  //
  // Errors keep the errno; IsAboutFunction() tells whether the next function
  // may fare better. Unimplemented for a cookie that the kernel cannot pass.
  absl::StatusOr<Link> Attach(const PerfKprobeCall& call);

  // True once the kernel was found to have no links for perf events.
  bool without_links() const { return form_ == Form::kIoctl; }

 private:
  enum class Form : uint8_t { kUntried, kLink, kIoctl };

  // Finds out why a link was refused with EINVAL, by two more calls.
  void FindForm();
  absl::StatusOr<UniqueFd> OpenEvent(const PerfKprobeCall& call);
  absl::StatusOr<Link> AttachByLink(const PerfKprobeCall& call,
                                    const UniqueFd& event);
  absl::StatusOr<Link> AttachByIoctl(const PerfKprobeCall& call,
                                     UniqueFd event);

  BpfSys& bpf_;
  PerfSys& perf_;
  KprobePmu pmu_;
  Form form_ = Form::kUntried;
};

// True if an error of PerfKprobes::Attach() is about its function: one that is
// not there, or that the kernel does not let be probed. False if it is about
// the program, the privilege or the machine.
bool IsAboutFunction(const absl::Status& status);

// What `err` of opening the event means for the function, for people.
std::string PerfKprobeRefusal(int err);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_KINDS_PERF_KPROBE_H_
