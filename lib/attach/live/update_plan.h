// What has to change for an attachment to be that of a newer resolution.

#ifndef KSWEEP_LIB_ATTACH_LIVE_UPDATE_PLAN_H_
#define KSWEEP_LIB_ATTACH_LIVE_UPDATE_PLAN_H_

#include <cstdint>
#include <vector>

#include "ksweep/attachment.h"
#include "ksweep/resolve.h"
#include "lib/attach/attachment_state.h"
#include "lib/attach/linking/group_linker.h"

namespace ksweep {

// A link that cannot stay as it is.
struct ChangedLink {
  uint32_t link = 0;  // index into the old AttachmentState::links
  // What of it stays attached, in a new link; no slots: nothing.
  LinkGroup rest;
  // The kernel refuses the new link while there is the old one.
  bool close_first = false;
};

struct UpdatePlan {
  // As it is to be, but for links and what comes with them. The descriptors of
  // the programs are the old one's.
  AttachmentState next;
  std::vector<ChangedLink> changed;  // ascending by link
  std::vector<LinkGroup> added;      // in the order of attaching
  uint64_t recookied = 0;            // functions that stay, with a new cookie
};

// True for kinds of which a program is attached to a function once only.
bool ClosesFirst(Kind kind);

// Asks nobody. `state` has to outlive the plan.
UpdatePlan PlanUpdate(const AttachmentState& state, const Resolution& newer,
                      const UpdateOptions& options);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LIVE_UPDATE_PLAN_H_
