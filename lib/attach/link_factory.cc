#include "lib/attach/link_factory.h"

#include <utility>

#include "lib/attach/kprobe_multi.h"
#include "lib/attach/prepare.h"

namespace ksweep {

absl::StatusOr<std::unique_ptr<LinkFactory>> MakeLinkFactory(
    BpfSys& sys, Kind kind, int prog_fd, const AttachOptions& options) {
  (void)options;
  absl::StatusOr<KindAbi> abi = FindKindAbi(kind);
  if (!abi.ok()) return abi.status();
  return std::make_unique<KprobeMultiFactory>(sys, *abi, prog_fd);
}

}  // namespace ksweep
