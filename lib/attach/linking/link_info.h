// What the kernel says of a link.

#ifndef KSWEEP_LIB_ATTACH_LINKING_LINK_INFO_H_
#define KSWEEP_LIB_ATTACH_LINKING_LINK_INFO_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/bpf_sys.h"

namespace ksweep {

struct LinkInfo {
  uint32_t type = 0;  // enum bpf_link_type
  uint32_t prog_id = 0;
  // Functions: since Linux 6.6 for kprobe.multi, 0 before. One where a link is
  // for one function.
  uint64_t cnt = 0;
  uint64_t missed = 0;  // since Linux 6.7; never for trampolines
  // In the kernel's order. Empty: not asked for, or not told. As they were
  // given for kprobes; the ftrace location, some bytes behind the start, for
  // tracing.multi.
  std::vector<uint64_t> addrs;
  // Parallel to addrs; empty where the kernel does not tell (before Linux 6.9).
  std::vector<uint64_t> cookies;
  bool addrs_hidden = false;  // told as zeros
  uint32_t btf_id = 0;        // of one function's trampoline
};

enum class LinkDetail : uint8_t { kCounts, kFunctions };

// One call for the counts, one or two more for the functions. Errors keep the
// errno.
absl::StatusOr<LinkInfo> ReadLinkInfo(BpfSys& sys, int link_fd,
                                      LinkDetail detail);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LINKING_LINK_INFO_H_
