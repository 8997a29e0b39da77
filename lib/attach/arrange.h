// Which program is attached to which functions, and in which links.

#ifndef KSWEEP_LIB_ATTACH_ARRANGE_H_
#define KSWEEP_LIB_ATTACH_ARRANGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ksweep/kind.h"
#include "lib/attach/attachment_state.h"
#include "lib/attach/group_linker.h"

namespace ksweep {

// When a program of a kind runs.
enum class Role : uint8_t { kReturn, kEntry, kBoth };

Role RoleOf(Kind kind);

// Ok if programs of `kinds` can be attached together: no kind twice, and none
// for both entry and return beside one for either.
absl::Status CheckKinds(absl::Span<const Kind> kinds);

// True for kinds whose links are for functions of one BTF object each.
bool LinksByOwner(Kind kind);

// The slots of the targets that fit, appended to `state`, for its programs; the
// groups in the order in which they are to be attached: returns before entries,
// then by program, the core kernel before modules. Of several cookies of a
// target each is a slot, and no group has an address twice. Only targets from
// `targets`, indices into the resolution's.
std::vector<LinkGroup> Arrange(AttachmentState& state,
                               absl::Span<const uint32_t> targets);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_ARRANGE_H_
