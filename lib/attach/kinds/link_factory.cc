#include "lib/attach/kinds/link_factory.h"

#include <utility>

#include "lib/attach/kinds/fentry.h"
#include "lib/attach/kinds/kprobe_multi.h"
#include "lib/attach/kinds/perf_kprobe_factory.h"
#include "lib/attach/kinds/tracing_multi.h"
#include "lib/attach/programs/prepare.h"

namespace ksweep {

std::unique_ptr<LinkFactory> MakeLinkFactory(const LinkSystem& system,
                                             const AttachedProgram& program,
                                             const AttachOptions& options) {
  const Kind kind = program.kind;
  const KindAbi& abi = AbiOf(kind);
  if (IsTracingMulti(kind)) {
    return std::make_unique<TracingMultiFactory>(system.bpf, abi, program);
  }
  if (kind == Kind::kKprobe || kind == Kind::kKretprobe) {
    return std::make_unique<PerfKprobeFactory>(
        system.bpf, system.perf, system.files, kind, program.fd,
        options.raise_fd_limit ? RaiseLimit::kYes : RaiseLimit::kNo);
  }
  if (NeedsBtf(kind)) {
    return std::make_unique<FentryFactory>(system.bpf, system.perf, abi,
                                           program, options);
  }
  return std::make_unique<KprobeMultiFactory>(system.bpf, abi, program.fd);
}

}  // namespace ksweep
