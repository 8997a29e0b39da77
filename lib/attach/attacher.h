// Attach() behind the seam to bpf(2).

#ifndef KSWEEP_LIB_ATTACH_ATTACHER_H_
#define KSWEEP_LIB_ATTACH_ATTACHER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/attach.h"
#include "ksweep/link.h"
#include "ksweep/resolve.h"
#include "lib/attach/isolate.h"
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

// One Attach(): checks, selects, makes the links. For a single use.
class Attacher : private LinkMaker {
 public:
  // All have to outlive the Attacher; `sys` also the Attachment.
  Attacher(BpfSys& sys, const Resolution& resolution,
           const AttachOptions& options)
      : sys_(sys), meter_(sys), resolution_(resolution), options_(options) {}

  // As AttachFd().
  absl::StatusOr<Attachment> Attach(int prog_fd) &&;

 private:
  absl::Status CheckArguments() const;
  // Fills the arrays by slot from the targets that fit the kind.
  void SelectTargets();
  void AddSlot(uint32_t target_index);
  absl::Status NoTargets() const;
  absl::Status CreateLinks();
  absl::Status ReportProgress() const;
  // The call for `slots`; its spans live until the next one.
  KprobeMultiCall CallFor(absl::Span<const uint32_t> slots);

  // LinkMaker.
  absl::StatusOr<Link> MakeLink(absl::Span<const uint32_t> slots) override;
  bool IsTrusted(uint32_t slot) const override;
  void Keep(Link link, size_t cnt) override;
  absl::Status Refuse(uint32_t slot, int err) override;

  // Of the refused functions so far.
  absl::Status CheckRefusedCnt() const;
  absl::Status RefusedError(std::string_view remedy) const;
  std::string NameRefused() const;

  const Target& TargetOf(uint32_t slot) const {
    return resolution_.targets()[attachment_.targets_[slot]];
  }
  size_t slot_cnt() const { return attachment_.targets_.size(); }

  BpfSys& sys_;
  MeteredBpfSys meter_;
  const Resolution& resolution_;
  const AttachOptions& options_;
  KindAbi abi_;
  int prog_fd_ = -1;

  // By slot. Of addrs_ and names_ one is empty.
  std::vector<uint64_t> addrs_;
  std::vector<std::string_view> names_;
  std::vector<uint64_t> cookies_;

  // The same for a call, if its slots are not in a row.
  std::vector<uint64_t> picked_addrs_;
  std::vector<std::string_view> picked_names_;
  std::vector<uint64_t> picked_cookies_;

  size_t attached_cnt_ = 0;
  size_t untested_refused_cnt_ = 0;
  // Until it is handed out, its destructor takes back what was attached.
  Attachment attachment_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_ATTACHER_H_
