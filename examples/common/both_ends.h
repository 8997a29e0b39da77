// Entry and return of functions: by one session program where the kernel has
// sessions, else by a pair of programs. The BPF side is both_ends.bpf.h.

#ifndef KSWEEP_EXAMPLES_COMMON_BOTH_ENDS_H_
#define KSWEEP_EXAMPLES_COMMON_BOTH_ENDS_H_

#include <bpf/libbpf.h>
#include <errno.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/bpf_errors.h"
#include "common/requests.h"
#include "ksweep/attach.h"
#include "ksweep/session.h"

ABSL_DECLARE_FLAG(bool, pair);

namespace examples {

// Without kprobe.multi functions are attached one by one; not more than this.
inline constexpr uint64_t kMaxOneByOne = 100;

struct BothEndsQuery {
  Query query;
  // kprobe.session; or kprobe.multi and kretprobe.multi; or kprobe and
  // kretprobe.
  std::vector<ksweep::Kind> kinds;
};

// Reads the requests as ReadQuery() does, for kinds by --kind and --pair, else
// for the first that the kernel can. Errors are of wrong usage.
absl::StatusOr<BothEndsQuery> ReadBothEndsQuery(
    const std::vector<std::string>& requests);

// InvalidArgument if that are too many functions for `kinds`.
absl::Status CheckCount(absl::Span<const ksweep::Kind> kinds, uint64_t count);

// Threads that a pair follows, each in a call at the same time.
inline constexpr uint32_t kMaxThreads = 4096;

// What both_ends.bpf.h defines.
struct BothEndsParts {
  bpf_program* both_ends = nullptr;
  bpf_program* at_entry = nullptr;
  bpf_program* at_return = nullptr;
  bpf_map* frames_of = nullptr;
};

// Between open and load: prepares those that `kinds` need, and lets the others
// not be loaded. The result is for Attach().
absl::StatusOr<std::vector<ksweep::KindProgram>> PrepareBothEnds(
    const BothEndsParts& parts, absl::Span<const ksweep::Kind> kinds);

// The programs, opened and prepared; to be loaded.
template <typename Skeleton>
struct BothEnds {
  ksweep::SessionSkeleton<Skeleton> skeleton;
  std::vector<ksweep::KindProgram> programs;  // for Attach()

  Skeleton* get() const { return skeleton.get(); }
  Skeleton* operator->() const { return skeleton.get(); }
};

// Opens the object that fits the kernel: without sessions either will do, as
// long as the session program is not loaded. `create` is the first's
// x_bpf__create_skeleton().
template <typename Skeleton, typename CtxSkeleton>
absl::StatusOr<ksweep::SessionSkeleton<Skeleton>> OpenFittingSkeleton(
    int (*create)(Skeleton*)) {
  const absl::StatusOr<ksweep::SessionAbi> abi = ksweep::DetectSessionAbi();
  if (!abi.ok()) return abi.status();
  if (*abi != ksweep::SessionAbi::kNone) {
    return ksweep::OpenSessionSkeleton<Skeleton, CtxSkeleton>(create);
  }
  ksweep::SessionSkeleton<Skeleton> skeleton(Skeleton::open());
  if (skeleton == nullptr) return LoadError(errno);
  return skeleton;
}

// Opens it and prepares the programs that `kinds` need. They have the names of
// BothEndsParts.
template <typename Skeleton, typename CtxSkeleton>
absl::StatusOr<BothEnds<Skeleton>> OpenBothEnds(
    int (*create)(Skeleton*), absl::Span<const ksweep::Kind> kinds) {
  auto skeleton = OpenFittingSkeleton<Skeleton, CtxSkeleton>(create);
  if (!skeleton.ok()) return skeleton.status();
  const auto& progs = (*skeleton)->progs;
  auto programs =
      PrepareBothEnds({progs.both_ends, progs.at_entry, progs.at_return,
                       (*skeleton)->maps.frames_of},
                      kinds);
  if (!programs.ok()) return programs.status();
  return BothEnds<Skeleton>{*std::move(skeleton), *std::move(programs)};
}

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_BOTH_ENDS_H_
