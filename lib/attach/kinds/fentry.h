// BPF trampolines of single functions: a program loaded for each, and a link.

#ifndef KSWEEP_LIB_ATTACH_KINDS_FENTRY_H_
#define KSWEEP_LIB_ATTACH_KINDS_FENTRY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/link.h"
#include "lib/attach/attachment_state.h"
#include "lib/attach/kinds/btf_objects.h"
#include "lib/attach/kinds/link_factory.h"
#include "lib/attach/programs/prepare.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/perf_sys.h"

namespace ksweep {

// Links of the kinds fentry, fexit and fsession. The kernel waits at each, for
// programs that may be running, so several are made at a time.
class FentryFactory : public LinkFactory {
 public:
  // All have to outlive it.
  FentryFactory(BpfSys& sys, PerfSys& limits, const KindAbi& abi,
                const AttachedProgram& program, const AttachOptions& options)
      : sys_(sys),
        limits_(limits),
        abi_(abi),
        program_(program),
        options_(options),
        objects_(sys) {}

  // ResourceExhausted with need and have where RLIMIT_NOFILE is too low: a
  // descriptor for each function, and one for each thread.
  absl::Status Reserve(size_t cnt) override;
  absl::Status Open(const LinkOwner& owner) override;
  size_t max_per_link() const override { return 1; }
  bool is_parallel() const override { return true; }
  absl::StatusOr<Link> MakeLink(absl::Span<const AttachPoint> points) override;
  Fault FaultOf(int err) const override;
  std::string FunctionRefusal(int err) const override;

 private:
  BpfSys& sys_;
  PerfSys& limits_;
  const KindAbi abi_;
  const AttachedProgram& program_;
  const AttachOptions& options_;
  BtfObjects objects_;
  uint32_t btf_obj_fd_ = 0;  // of the open owner
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_KINDS_FENTRY_H_
