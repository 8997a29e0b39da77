// Links one program to some of an attachment's slots.

#ifndef KSWEEP_LIB_ATTACH_LINKING_GROUP_LINKER_H_
#define KSWEEP_LIB_ATTACH_LINKING_GROUP_LINKER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/attach/attachment_state.h"
#include "lib/attach/kinds/link_factory.h"
#include "lib/attach/linking/isolate.h"
#include "lib/attach/linking/refusals.h"

namespace ksweep {

// How far an attach of several groups has come.
struct AttachProgress {
  size_t attached = 0;
  size_t total = 0;
};

// Slots to be linked to one program, ascending.
struct LinkGroup {
  uint32_t program = 0;  // index into AttachmentState::programs
  std::string module;
  uint32_t rank = 0;  // which of the cookies of their targets
  std::vector<uint32_t> slots;
};

// For a single use.
class GroupLinker : private LinkMaker {
 public:
  // All have to outlive it. Made links go to the end of `state.links`.
  GroupLinker(AttachmentState& state, LinkFactory& factory, Refusals& refusals,
              const AttachOptions& options, AttachProgress& progress)
      : state_(state),
        factory_(factory),
        refusals_(refusals),
        options_(options),
        progress_(progress) {}

  absl::Status Run(const LinkGroup& group) &&;

 private:
  // LinkMaker, by index into group_->slots.
  absl::StatusOr<Link> MakeLink(absl::Span<const uint32_t> slots) override;
  Fault FaultOf(int err) const override { return factory_.FaultOf(err); }
  bool IsTrusted(uint32_t slot) const override;
  void Keep(Link link, absl::Span<const uint32_t> slots) override;
  absl::Status Refuse(uint32_t slot, int err) override;

  absl::Status RunParallel();
  absl::Status CheckCall(size_t refused_cnt, const absl::Status& refused) const;
  absl::Status RefuseWith(uint32_t slot, int err, std::string reason);
  absl::Status RefuseAll(int err);
  // Links the slot, refused with `err`, by name, if that can help and does.
  bool LinkByName(uint32_t slot, int err);
  absl::Status ReportProgress() const;
  AttachPoint PointOf(uint32_t slot) const;
  const Target& TargetOf(uint32_t slot) const {
    return state_.resolution.targets()[state_.slots[slot].target];
  }

  AttachmentState& state_;
  LinkFactory& factory_;
  Refusals& refusals_;
  const AttachOptions& options_;
  AttachProgress& progress_;
  const LinkGroup* group_ = nullptr;
  std::vector<AttachPoint> points_;  // of a call; kept for the next one
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LINKING_GROUP_LINKER_H_
