// The kprobe.multi link: its arrays, its one system call, its errors.

#ifndef KSWEEP_LIB_ATTACH_KINDS_KPROBE_MULTI_H_
#define KSWEEP_LIB_ATTACH_KINDS_KPROBE_MULTI_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/link.h"
#include "lib/attach/kinds/link_factory.h"
#include "lib/attach/programs/prepare.h"
#include "lib/base/bpf_sys.h"

namespace ksweep {

// Bytes of the kernel's unsigned long and pointers, also for a 32-bit process:
// kprobe.multi exists only where they have 64 bits, else it is EOPNOTSUPP
// (Linux v5.18, kernel/trace/bpf_trace.c, bpf_kprobe_multi_link_attach()).
inline constexpr size_t kKernelWordBytes = 8;

// `words` as an array of the kernel's unsigned longs with `width` bytes, 4 or
// 8. InvalidArgument for a word that does not fit.
absl::StatusOr<std::vector<uint8_t>> EncodeWords(
    absl::Span<const uint64_t> words, size_t width);

// One link to be made. The spans have to outlive the call only.
struct KprobeMultiCall {
  KindAbi abi;
  int prog_fd = -1;
  // Either starts of functions or names, no duplicates. Not ftrace locations:
  // the kernel looks cookies up by the start and would find none.
  absl::Span<const uint64_t> addrs;
  absl::Span<const std::string_view> names;
  // One for each.
  absl::Span<const uint64_t> cookies;

  size_t cnt() const { return addrs.size() + names.size(); }
};

// Makes the link with one BPF_LINK_CREATE. All or nothing: after an error,
// which is KprobeMultiError()'s, nothing is attached.
absl::StatusOr<Link> CreateKprobeMultiLink(BpfSys& sys,
                                           const KprobeMultiCall& call);

// What `err` means for `call` and what to do; keeps the errno.
absl::Status KprobeMultiError(int err, const KprobeMultiCall& call);

// Links of the kinds kprobe.multi, kretprobe.multi and kprobe.session.
class KprobeMultiFactory : public LinkFactory {
 public:
  KprobeMultiFactory(BpfSys& sys, const KindAbi& abi, int prog_fd)
      : sys_(sys), abi_(abi), prog_fd_(prog_fd) {}

  size_t max_per_link() const override { return kMaxPerLink; }
  absl::StatusOr<Link> MakeLink(absl::Span<const AttachPoint> points) override;
  std::string FunctionRefusal(int err) const override;

 private:
  BpfSys& sys_;
  const KindAbi abi_;
  const int prog_fd_;
  // Of a call; kept for the next one.
  std::vector<uint64_t> addrs_;
  std::vector<std::string_view> names_;
  std::vector<uint64_t> cookies_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_KINDS_KPROBE_MULTI_H_
