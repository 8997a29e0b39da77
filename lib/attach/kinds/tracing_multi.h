// The tracing_multi link: BTF ids of one BTF object, its one system call, its
// errors.

#ifndef KSWEEP_LIB_ATTACH_KINDS_TRACING_MULTI_H_
#define KSWEEP_LIB_ATTACH_KINDS_TRACING_MULTI_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/link.h"
#include "lib/attach/attachment_state.h"
#include "lib/attach/kinds/btf_objects.h"
#include "lib/attach/kinds/link_factory.h"
#include "lib/attach/programs/prepare.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/unique_fd.h"

namespace ksweep {

// The most functions of one link (Linux v7.3, kernel/trace/bpf_trace.c,
// MAX_TRACING_MULTI_CNT).
inline constexpr size_t kMaxTracingMultiCnt = size_t{1} << 20;

// One link to be made. The spans have to outlive the call only.
struct TracingMultiCall {
  KindAbi abi;
  int prog_fd = -1;
  std::string_view module;             // whose BTF the ids are of; for messages
  absl::Span<const uint32_t> ids;      // no duplicates
  absl::Span<const uint64_t> cookies;  // one for each
};

// Makes the link with one BPF_LINK_CREATE. All or nothing: after an error,
// which is TracingMultiError()'s, nothing is attached.
absl::StatusOr<Link> CreateTracingMultiLink(BpfSys& sys,
                                            const TracingMultiCall& call);

// What `err` means for `call` and what to do; keeps the errno.
absl::Status TracingMultiError(int err, const TracingMultiCall& call);

// Links of the kinds fentry.multi, fexit.multi and fsession.multi.
//
// A program is for the functions of one BTF object, and can be linked once to
// each. So for every module, and for the second cookie of a function, it is
// loaded once more; the links hold these programs.
class TracingMultiFactory : public LinkFactory {
 public:
  // `program` has to outlive it.
  TracingMultiFactory(BpfSys& sys, const KindAbi& abi,
                      const AttachedProgram& program)
      : sys_(sys), abi_(abi), program_(program), objects_(sys) {}

  absl::Status Open(const LinkOwner& owner) override;
  size_t max_per_link() const override { return kMaxTracingMultiCnt; }
  absl::StatusOr<Link> MakeLink(absl::Span<const AttachPoint> points) override;
  Fault FaultOf(int err) const override;
  std::string FunctionRefusal(int err) const override;

 private:
  absl::StatusOr<UniqueFd> LoadFor(const LinkOwner& owner);

  BpfSys& sys_;
  const KindAbi abi_;
  const AttachedProgram& program_;
  BtfObjects objects_;
  // What was loaded, by module and rank.
  std::map<std::tuple<std::string, uint32_t>, UniqueFd> loaded_;
  int prog_fd_ = -1;    // for the open owner
  std::string module_;  // of the open owner
  // Of a call; kept for the next one.
  std::vector<uint32_t> ids_;
  std::vector<uint64_t> cookies_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_KINDS_TRACING_MULTI_H_
