#include "selftests/bench/attach/raw_link.h"

#include <bpf/libbpf.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "lib/attach/kinds/kprobe_multi.h"
#include "lib/attach/programs/prepare.h"
#include "lib/base/bpf_sys.h"

namespace ksweep::bench {
namespace {

absl::StatusOr<Link> MakeLink(const bpf_program* prog, Kind kind,
                              KprobeMultiCall call) {
  std::vector<uint64_t> cookies(call.cnt());
  std::iota(cookies.begin(), cookies.end(), 0);
  call.abi = AbiOf(kind);
  call.prog_fd = bpf_program__fd(prog);
  call.cookies = cookies;
  return CreateKprobeMultiLink(BpfSys::Kernel(), call);
}

}  // namespace

absl::StatusOr<Link> LinkByName(const bpf_program* prog, Kind kind,
                                absl::Span<const std::string_view> names) {
  KprobeMultiCall call;
  call.names = names;
  return MakeLink(prog, kind, call);
}

absl::StatusOr<Link> LinkByAddress(const bpf_program* prog, Kind kind,
                                   uint64_t addr) {
  KprobeMultiCall call;
  call.addrs = {&addr, 1};
  return MakeLink(prog, kind, call);
}

}  // namespace ksweep::bench
