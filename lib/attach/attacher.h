// Attach() behind the seam to bpf(2).

#ifndef KSWEEP_LIB_ATTACH_ATTACHER_H_
#define KSWEEP_LIB_ATTACH_ATTACHER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/attach.h"
#include "ksweep/kernel_files.h"
#include "ksweep/resolve.h"
#include "lib/attach/attachment_state.h"
#include "lib/attach/linking/group_linker.h"
#include "lib/attach/linking/metered_sys.h"
#include "lib/attach/linking/refusals.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/perf_sys.h"

namespace ksweep {

// A program by its descriptor.
struct ProgramFd {
  Kind kind = Kind::kKprobeMulti;
  int fd = -1;
  // For the kinds that may have to load it once more; null: they cannot.
  std::shared_ptr<ProgramImage> image = nullptr;
  // As KindProgram::absent.
  std::string absent = {};
};

// One Attach(): checks, selects, makes the links. For a single use.
class Attacher {
 public:
  // All have to outlive the Attacher; `sys` also the Attachment.
  Attacher(BpfSys& sys, const Resolution& resolution,
           const AttachOptions& options, PerfSys& perf = PerfSys::Kernel(),
           KernelFiles files = KernelFiles());

  // As AttachFd().
  absl::StatusOr<Attachment> Attach(int prog_fd) &&;
  // As Attach() with several.
  absl::StatusOr<Attachment> Attach(absl::Span<const ProgramFd> programs) &&;

 private:
  absl::StatusOr<Kind> OnlyKind() const;
  // Those that are there; the others go to the report.
  std::vector<ProgramFd> TakePresent(absl::Span<const ProgramFd> programs);
  uint64_t CountFitting(Kind kind) const;
  absl::Status CheckArguments(absl::Span<const ProgramFd> programs) const;
  absl::Status AddPrograms(absl::Span<const ProgramFd> programs);
  void MakeFactories();
  std::vector<LinkGroup> SelectTargets();
  absl::Status NoTargets() const;
  absl::Status Reserve(absl::Span<const LinkGroup> groups);
  absl::Status CheckSingle(size_t cnt, Kind kind) const;
  absl::Status LinkAll(std::vector<LinkGroup> groups);
  void LeaveOutRefused(LinkGroup& group) const;
  void FillReport(int64_t total_ns);

  SysMeter meter_;
  MeteredBpfSys bpf_;
  MeteredPerfSys perf_;
  const KernelFiles files_;
  const AttachOptions& options_;
  // Until it is handed out, its destructor takes back what was attached.
  std::unique_ptr<AttachmentState> state_;
  std::vector<std::unique_ptr<LinkFactory>> factories_;  // by program
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_ATTACHER_H_
