// Which program is attached to which functions, and in which links.

#ifndef KSWEEP_LIB_ATTACH_LINKING_ARRANGE_H_
#define KSWEEP_LIB_ATTACH_LINKING_ARRANGE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ksweep/kind.h"
#include "lib/attach/attachment_state.h"
#include "lib/attach/linking/group_linker.h"

namespace ksweep {

// When a program of a kind runs.
enum class Role : uint8_t { kReturn, kEntry, kBoth };

Role RoleOf(Kind kind);

// Ok if no kind is there twice.
absl::Status CheckDistinct(absl::Span<const Kind> kinds);

// False if one is for both entry and return and the other for either.
bool GoTogether(Kind a, Kind b);

// Ok if programs of `kinds` can be attached together: no kind twice, and none
// for both entry and return beside one for either.
absl::Status CheckKinds(absl::Span<const Kind> kinds);

// True for kinds whose programs are for functions of one BTF object each.
bool LinksByOwner(Kind kind);

inline constexpr uint32_t kNoProgram = UINT32_MAX;

// The programs for a target, as indices into AttachmentState::programs.
struct ProgramChoice {
  uint32_t at_return = kNoProgram;
  uint32_t at_entry = kNoProgram;  // also what runs at both
};

ProgramChoice ChoosePrograms(const AttachmentState& state,
                             const Target& target);

// Slots by what they can share a link in.
class SlotGroups {
 public:
  // Has to outlive it.
  explicit SlotGroups(const AttachmentState& state) : state_(state) {}

  // `rank` differs for slots of one function. Nothing for kNoProgram.
  void Add(uint32_t program, uint32_t rank, std::string_view module,
           uint32_t slot);

  // In the order in which they are to be attached.
  std::vector<LinkGroup> Take() &&;

 private:
  // Role, program, rank, module: the order of attaching.
  using Key = std::tuple<Role, uint32_t, uint32_t, std::string>;

  const AttachmentState& state_;
  std::map<Key, std::vector<uint32_t>> groups_;
};

// The slots of the targets that fit, appended to `state`, for its programs; the
// groups in the order in which they are to be attached: returns before entries,
// then by program, the core kernel before modules. Of several cookies of a
// target each is a slot, and no group has an address twice. Only targets from
// `targets`, indices into the resolution's.
std::vector<LinkGroup> Arrange(AttachmentState& state,
                               absl::Span<const uint32_t> targets);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LINKING_ARRANGE_H_
