#include "lib/attach/linking/arrange.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"

namespace ksweep {
namespace {

class Arranger {
 public:
  explicit Arranger(AttachmentState& state) : state_(state), groups_(state) {}

  void Add(uint32_t target_index);
  std::vector<LinkGroup> Take() && { return std::move(groups_).Take(); }

 private:
  void AddSlot(uint32_t target_index, const ProgramChoice& choice,
               uint32_t rank);
  uint64_t CookieOf(const Target& target, uint32_t rank) const;

  AttachmentState& state_;
  SlotGroups groups_;
};

void Arranger::Add(uint32_t target_index) {
  const Target& target = state_.resolution.targets()[target_index];
  const ProgramChoice choice = ChoosePrograms(state_, target);
  if (choice.at_return == kNoProgram && choice.at_entry == kNoProgram) return;
  const size_t slot_cnt = 1 + target.more_cookies.size();
  for (uint32_t rank = 0; rank < slot_cnt; ++rank) {
    AddSlot(target_index, choice, rank);
  }
}

void Arranger::AddSlot(uint32_t target_index, const ProgramChoice& choice,
                       uint32_t rank) {
  const Target& target = state_.resolution.targets()[target_index];
  const auto index = static_cast<uint32_t>(state_.slots.size());
  Slot slot;
  slot.target = target_index;
  slot.addr = target.addr;
  slot.cookie = CookieOf(target, rank);
  slot.rank = rank;
  state_.slots.push_back(slot);
  state_.targets.push_back(target_index);
  groups_.Add(choice.at_return, rank, target.module, index);
  groups_.Add(choice.at_entry, rank, target.module, index);
}

uint64_t Arranger::CookieOf(const Target& target, uint32_t rank) const {
  if (!state_.resolution.has_cookies()) return state_.slots.size();
  return rank == 0 ? target.cookie : target.more_cookies[rank - 1];
}

}  // namespace

Role RoleOf(Kind kind) {
  switch (kind) {
    case Kind::kKretprobeMulti:
    case Kind::kKretprobe:
    case Kind::kFexit:
    case Kind::kFexitMulti:
      return Role::kReturn;
    case Kind::kKprobeSession:
    case Kind::kFsession:
    case Kind::kFsessionMulti:
      return Role::kBoth;
    case Kind::kKprobeMulti:
    case Kind::kKprobe:
    case Kind::kFentry:
    case Kind::kFentryMulti:
      break;
  }
  return Role::kEntry;
}

absl::Status CheckDistinct(absl::Span<const Kind> kinds) {
  KindSet seen;
  for (Kind kind : kinds) {
    if (seen.Has(kind)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "two programs of kind %s; attach the second one by itself",
          Av(KindName(kind))));
    }
    seen.Add(kind);
  }
  return absl::OkStatus();
}

bool GoTogether(Kind a, Kind b) {
  return (RoleOf(a) == Role::kBoth) == (RoleOf(b) == Role::kBoth);
}

absl::Status CheckKinds(absl::Span<const Kind> kinds) {
  for (Kind kind : kinds) {
    if (GoTogether(kinds.front(), kind)) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "programs of kinds %s and %s together: one is for entry and return, "
        "the other for either, so functions would be hit twice; attach them "
        "one after the other",
        Av(KindName(kinds.front())), Av(KindName(kind))));
  }
  return CheckDistinct(kinds);
}

bool LinksByOwner(Kind kind) { return NeedsBtf(kind); }

ProgramChoice ChoosePrograms(const AttachmentState& state,
                             const Target& target) {
  ProgramChoice choice;
  for (uint32_t i = 0; i < state.programs.size(); ++i) {
    const Kind kind = state.programs[i].kind;
    if (!target.kinds.Has(kind)) continue;
    uint32_t& chosen =
        RoleOf(kind) == Role::kReturn ? choice.at_return : choice.at_entry;
    if (chosen == kNoProgram) chosen = i;
  }
  return choice;
}

void SlotGroups::Add(uint32_t program, uint32_t rank, std::string_view module,
                     uint32_t slot) {
  if (program == kNoProgram) return;
  const Kind kind = state_.programs[program].kind;
  const bool by_owner = state_.options.updatable || LinksByOwner(kind);
  Key key(RoleOf(kind), program, rank, by_owner ? module : "");
  groups_[std::move(key)].push_back(slot);
}

std::vector<LinkGroup> SlotGroups::Take() && {
  std::vector<LinkGroup> groups;
  for (auto& [key, slots] : groups_) {
    const auto& [role, program, rank, module] = key;
    groups.push_back({program, module, rank, std::move(slots)});
  }
  return groups;
}

std::vector<LinkGroup> Arrange(AttachmentState& state,
                               absl::Span<const uint32_t> targets) {
  Arranger arranger(state);
  for (uint32_t target : targets) arranger.Add(target);
  return std::move(arranger).Take();
}

}  // namespace ksweep
