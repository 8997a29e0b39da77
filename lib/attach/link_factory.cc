#include "lib/attach/link_factory.h"

#include <utility>

#include "lib/attach/arrange.h"
#include "lib/attach/kprobe_multi.h"
#include "lib/attach/prepare.h"
#include "lib/attach/tracing_multi.h"

namespace ksweep {

absl::StatusOr<std::unique_ptr<LinkFactory>> MakeLinkFactory(
    BpfSys& sys, const AttachedProgram& program, const AttachOptions& options) {
  (void)options;
  absl::StatusOr<KindAbi> abi = FindKindAbi(program.kind);
  if (!abi.ok()) return abi.status();
  if (LinksByOwner(program.kind)) {
    return std::make_unique<TracingMultiFactory>(sys, *abi, program);
  }
  return std::make_unique<KprobeMultiFactory>(sys, *abi, program.fd);
}

}  // namespace ksweep
