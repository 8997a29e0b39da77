// Attach() behind the seam to bpf(2).

#ifndef KSWEEP_LIB_ATTACH_ATTACHER_H_
#define KSWEEP_LIB_ATTACH_ATTACHER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ksweep/attach.h"
#include "ksweep/resolve.h"
#include "lib/attach/kprobe_multi.h"
#include "lib/attach/prepare.h"
#include "lib/base/bpf_sys.h"

namespace ksweep {

// Passes calls on, counts them, and takes the time. Not thread-safe.
class MeteredBpfSys : public BpfSys {
 public:
  explicit MeteredBpfSys(BpfSys& sys) : sys_(sys) {}

  int Bpf(int cmd, void* attr, size_t size) override;

  uint32_t calls() const { return calls_; }
  int64_t ns() const { return ns_; }

 private:
  BpfSys& sys_;
  uint32_t calls_ = 0;
  int64_t ns_ = 0;
};

// One Attach(): checks, selects, splits, makes the links. For a single use.
class Attacher {
 public:
  // All have to outlive the Attacher; `sys` also the Attachment.
  Attacher(BpfSys& sys, const Resolution& resolution,
           const AttachOptions& options)
      : sys_(sys), meter_(sys), resolution_(resolution), options_(options) {}

  // As AttachFd().
  absl::StatusOr<Attachment> Attach(int prog_fd) &&;

 private:
  absl::Status CheckArguments(int prog_fd);
  // Fills the arrays by slot from the targets that fit the kind.
  void SelectTargets();
  void AddSlot(uint32_t target_index);
  absl::Status NoTargets() const;
  absl::Status CreateLinks(int prog_fd);
  absl::Status CreateLink(const KprobeMultiCall& call);
  absl::Status ReportProgress(size_t done) const;
  // The call for `cnt` slots from `first` on.
  KprobeMultiCall CallFor(int prog_fd, size_t first, size_t cnt) const;
  size_t slot_cnt() const { return attachment_.targets_.size(); }

  BpfSys& sys_;
  MeteredBpfSys meter_;
  const Resolution& resolution_;
  const AttachOptions& options_;
  KindAbi abi_;

  // By slot. Of addrs_ and names_ one is empty.
  std::vector<uint64_t> addrs_;
  std::vector<std::string_view> names_;
  std::vector<uint64_t> cookies_;

  // Until it is handed out, its destructor takes back what was attached.
  Attachment attachment_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_ATTACHER_H_
