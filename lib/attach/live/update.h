// Brings an attachment up to date.

#ifndef KSWEEP_LIB_ATTACH_LIVE_UPDATE_H_
#define KSWEEP_LIB_ATTACH_LIVE_UPDATE_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ksweep/attachment.h"
#include "ksweep/resolve.h"
#include "lib/attach/attachment_state.h"
#include "lib/attach/kinds/link_factory.h"
#include "lib/attach/linking/group_linker.h"
#include "lib/attach/linking/metered_sys.h"
#include "lib/attach/linking/refusals.h"
#include "lib/attach/live/update_plan.h"

namespace ksweep {

// As Attachment::Update().
absl::StatusOr<UpdateReport> UpdateAttachment(AttachmentState& state,
                                              const Resolution& newer,
                                              const UpdateOptions& options);

// As Attachment::Release().
absl::StatusOr<UpdateReport> ReleaseModule(AttachmentState& state,
                                           std::string_view module);

// One update, of which the arguments are known to be right. For a single use.
//
// What is to be lies in plan_.next and becomes the attachment's state at the
// end, so that after an error there is nothing to put back but links that had
// to be closed first.
class Updater {
 public:
  // All have to outlive it.
  Updater(AttachmentState& state, const Resolution& newer,
          const UpdateOptions& options);

  // After an error `state` is as before.
  absl::StatusOr<UpdateReport> Run() &&;

 private:
  absl::Status Prepare();
  absl::Status CheckSlots() const;
  absl::Status MakeFactories();

  absl::Status LinkAll();
  std::vector<LinkGroup> NewGroups() const;
  absl::Status LinkNext(LinkGroup group);
  bool IsRefusedNow(uint32_t slot) const;
  absl::Status ReplaceClosed(const ChangedLink& changed);

  absl::Status Undo(const absl::Status& failure);
  absl::Status Restore(uint32_t link);

  void CountFunctions();
  void CountDisturbed();
  void Commit();

  const int64_t start_ns_;
  AttachmentState& state_;
  const UpdateOptions& update_options_;
  AttachOptions options_;  // for making links
  SysMeter meter_;
  MeteredBpfSys bpf_;
  MeteredPerfSys perf_;
  UpdatePlan plan_;
  AttachProgress progress_;
  Refusals refusals_;
  std::vector<std::unique_ptr<LinkFactory>> factories_;  // by program; or null
  std::vector<uint32_t> closed_;  // old links that had to be closed first
  UpdateReport report_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LIVE_UPDATE_H_
