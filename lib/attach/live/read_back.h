// Attachment::ReadBack().

#ifndef KSWEEP_LIB_ATTACH_LIVE_READ_BACK_H_
#define KSWEEP_LIB_ATTACH_LIVE_READ_BACK_H_

#include "absl/status/statusor.h"
#include "ksweep/attachment.h"
#include "lib/attach/attachment_state.h"

namespace ksweep {

absl::StatusOr<ReadBackReport> ReadBack(const AttachmentState& state);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LIVE_READ_BACK_H_
