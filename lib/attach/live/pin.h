// Links as files of a BPF file system.

#ifndef KSWEEP_LIB_ATTACH_LIVE_PIN_H_
#define KSWEEP_LIB_ATTACH_LIVE_PIN_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ksweep/attach.h"
#include "lib/attach/attachment_state.h"
#include "lib/base/bpf_sys.h"

namespace ksweep {

// As the members of Attachment.
absl::Status PinLinks(AttachmentState& state, const std::string& dir);
absl::Status UnpinLinks(AttachmentState& state);
absl::StatusOr<std::unique_ptr<AttachmentState>> TakeOverLinks(
    BpfSys& sys, const std::string& dir, const Resolution& resolution,
    const AttachOptions& options);

// The name of a pin: the link's number, to keep the order, and the kind, which
// no link tells. The file system allows no dots.
std::string PinName(size_t link, Kind kind);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LIVE_PIN_H_
