#include "selftests/bench/attach/raw_link.h"

#include <bpf/libbpf.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "lib/attach/kprobe_multi.h"
#include "lib/attach/prepare.h"
#include "lib/base/bpf_sys.h"

namespace ksweep::bench {

absl::StatusOr<Link> LinkByName(const bpf_program* prog, Kind kind,
                                absl::Span<const std::string_view> names) {
  absl::StatusOr<KindAbi> abi = FindKindAbi(kind);
  if (!abi.ok()) return abi.status();
  std::vector<uint64_t> cookies(names.size());
  std::iota(cookies.begin(), cookies.end(), 0);
  KprobeMultiCall call;
  call.abi = *abi;
  call.prog_fd = bpf_program__fd(prog);
  call.names = names;
  call.cookies = cookies;
  return CreateKprobeMultiLink(BpfSys::Kernel(), call);
}

}  // namespace ksweep::bench
