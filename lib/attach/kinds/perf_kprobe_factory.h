// Single kprobes as links of one function each.

#ifndef KSWEEP_LIB_ATTACH_KINDS_PERF_KPROBE_FACTORY_H_
#define KSWEEP_LIB_ATTACH_KINDS_PERF_KPROBE_FACTORY_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/kernel_files.h"
#include "ksweep/kind.h"
#include "ksweep/link.h"
#include "lib/attach/kinds/fd_budget.h"
#include "lib/attach/kinds/link_factory.h"
#include "lib/attach/kinds/perf_kprobe.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/perf_sys.h"

namespace ksweep {

// Links of the kinds kprobe and kretprobe.
class PerfKprobeFactory : public LinkFactory {
 public:
  // The seams have to outlive it. The PMU is looked up in `files`, and only
  // when it is needed.
  PerfKprobeFactory(BpfSys& bpf, PerfSys& perf, KernelFiles files, Kind kind,
                    int prog_fd, RaiseLimit raise)
      : bpf_(bpf),
        perf_(perf),
        files_(std::move(files)),
        kind_(kind),
        prog_fd_(prog_fd),
        raise_(raise) {}

  // Unimplemented without the kernel's PMU for kprobes, ResourceExhausted with
  // need and have where RLIMIT_NOFILE is too low.
  absl::Status Reserve(size_t cnt) override;

  size_t max_per_link() const override { return 1; }
  absl::StatusOr<Link> MakeLink(absl::Span<const AttachPoint> points) override;
  std::string FunctionRefusal(int err) const override {
    return PerfKprobeRefusal(err);
  }

 private:
  absl::Status FindPmu();

  BpfSys& bpf_;
  PerfSys& perf_;
  const KernelFiles files_;
  const Kind kind_;
  const int prog_fd_;
  const RaiseLimit raise_;
  std::optional<PerfKprobes> kprobes_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_KINDS_PERF_KPROBE_FACTORY_H_
