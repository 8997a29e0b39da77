// An attachment made of links that were there already.

#ifndef KSWEEP_LIB_ATTACH_LIVE_TAKEN_OVER_H_
#define KSWEEP_LIB_ATTACH_LIVE_TAKEN_OVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ksweep/attach.h"
#include "lib/attach/attachment_state.h"
#include "lib/attach/linking/link_info.h"
#include "lib/base/bpf_sys.h"

namespace ksweep {

// Reads each link's functions and finds their slots. For a single use.
class TakenOver {
 public:
  // `sys` has to outlive the attachment.
  TakenOver(BpfSys& sys, const Resolution& resolution,
            const AttachOptions& options);

  absl::Status Add(Link link, Kind kind);
  absl::StatusOr<std::unique_ptr<AttachmentState>> Finish() &&;

 private:
  struct Found {
    uint64_t addr = 0;
    uint64_t cookie = 0;
    uint32_t link = 0;
  };

  absl::StatusOr<uint32_t> ProgramOf(const LinkInfo& info, Kind kind);
  bool CookiesAreSlots() const;
  uint32_t TargetAt(uint64_t addr) const;
  void SetSlot(uint32_t slot, const Found& found);
  void GroupByOwner();

  std::unique_ptr<AttachmentState> state_;
  std::vector<Found> found_;
  std::vector<uint32_t> prog_ids_;  // by program
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LIVE_TAKEN_OVER_H_
