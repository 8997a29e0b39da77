#include "lib/attach/live/update_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ksweep/diff.h"
#include "lib/attach/linking/arrange.h"
#include "lib/attach/programs/prepare.h"

namespace ksweep {
namespace {

// Programs as bits: no kind is there twice, so there are few.
uint32_t BitOf(uint32_t program) {
  return program == kNoProgram ? 0 : uint32_t{1} << program;
}

class Planner {
 public:
  Planner(const AttachmentState& state, const Resolution& newer,
          const UpdateOptions& options)
      : old_(state), options_(options), added_(plan_.next) {
    plan_.next.sys = state.sys;
    plan_.next.resolution = newer;
    plan_.next.options = state.options;
    for (const AttachedProgram& program : state.programs) {
      plan_.next.programs.push_back(
          {program.kind, program.fd, UniqueFd(), program.works, program.image});
    }
    plan_.next.slots = state.slots;
    plan_.next.refused = state.refused;
    plan_.next.report = state.report;
  }

  UpdatePlan Run() && {
    const size_t old_cnt = old_.slots.size();
    MoveSlots();
    DropSlots();
    if (options_.retry_refused) ForgetRefusals();
    SplitCookies();
    has_.resize(plan_.next.slots.size());
    recookied_.resize(plan_.next.slots.size());
    for (size_t i = 0; i < old_cnt; ++i) NoteCookie(i);
    for (uint32_t i = 0; i < old_.links.size(); ++i) KeepOrChange(i);
    AddMissing();
    Finish();
    return std::move(plan_);
  }

 private:
  void MoveSlots();
  void DropSlots();
  void ForgetRefusals();
  void SplitCookies();
  void NoteCookie(size_t slot);
  void KeepOrChange(uint32_t link);
  void AddMissing();
  void Finish();

  // The slots that a target has now, ascending.
  void GiveCookies(uint32_t target, std::vector<uint32_t> slots);
  std::vector<uint64_t> CookiesOf(const Target& target) const;
  void AddSlot(uint32_t target, uint64_t cookie, uint32_t rank);
  void Drop(uint32_t slot);
  uint32_t WantedPrograms(const Slot& slot) const;
  const std::vector<Target>& targets() const {
    return plan_.next.resolution.targets();
  }

  const AttachmentState& old_;
  const UpdateOptions& options_;
  UpdatePlan plan_;
  SlotGroups added_;
  std::vector<uint32_t> has_;  // by slot, programs whose links it stays in
  std::vector<bool>
      recookied_;  // by slot, whether its cookie is another than before
};

// Slots of functions that stay get the new index of their target.
void Planner::MoveSlots() {
  std::vector<uint32_t> new_index(old_.resolution.targets().size(), kNoTarget);
  for (const TargetPair& pair :
       Diff(old_.resolution, plan_.next.resolution).kept) {
    new_index[pair.older] = pair.newer;
  }
  for (Slot& slot : plan_.next.slots) {
    if (slot.target != kNoTarget) slot.target = new_index[slot.target];
  }
}

void Planner::DropSlots() {
  for (uint32_t i = 0; i < plan_.next.slots.size(); ++i) {
    if (plan_.next.slots[i].target == kNoTarget) Drop(i);
  }
}

// Lets those that were refused be missing.
void Planner::ForgetRefusals() {
  std::erase_if(plan_.next.refused, [this](const RefusedFunction& refused) {
    Slot& slot = plan_.next.slots[refused.slot];
    if (slot.target == kNoTarget) return false;
    slot.refused = false;
    return true;
  });
}

void Planner::Drop(uint32_t slot) {
  plan_.next.slots[slot].target = kNoTarget;
  plan_.next.slots[slot].attached = false;
}

// Gives each target its slots: one for each cookie.
void Planner::SplitCookies() {
  std::vector<std::vector<uint32_t>> slots_of(targets().size());
  for (uint32_t i = 0; i < plan_.next.slots.size(); ++i) {
    const uint32_t target = plan_.next.slots[i].target;
    if (target != kNoTarget) slots_of[target].push_back(i);
  }
  for (uint32_t i = 0; i < targets().size(); ++i) {
    const ProgramChoice choice = ChoosePrograms(plan_.next, targets()[i]);
    const bool fits =
        choice.at_return != kNoProgram || choice.at_entry != kNoProgram;
    if (fits) {
      GiveCookies(i, std::move(slots_of[i]));
    } else {
      for (uint32_t slot : slots_of[i]) Drop(slot);
    }
  }
}

// Empty: each slot's own number.
std::vector<uint64_t> Planner::CookiesOf(const Target& target) const {
  std::vector<uint64_t> cookies;
  if (!plan_.next.resolution.has_cookies()) return cookies;
  cookies.push_back(target.cookie);
  cookies.insert(cookies.end(), target.more_cookies.begin(),
                 target.more_cookies.end());
  return cookies;
}

void Planner::GiveCookies(uint32_t target, std::vector<uint32_t> slots) {
  std::vector<Slot>& all = plan_.next.slots;
  std::vector<uint64_t> cookies = CookiesOf(targets()[target]);
  if (cookies.empty()) {
    cookies.push_back(slots.empty() ? all.size() : slots.front());
  }
  // None that a slot has that is dropped here: its link may still be there
  // when that of the new slot is made.
  uint32_t free_rank = 0;
  for (uint32_t slot : slots) {
    free_rank = std::max(free_rank, all[slot].rank + 1);
  }
  // First those that have one of them already.
  std::erase_if(slots, [&](uint32_t slot) {
    const auto same =
        std::find(cookies.begin(), cookies.end(), all[slot].cookie);
    if (same == cookies.end()) return false;
    cookies.erase(same);
    return true;
  });
  for (size_t i = 0; i < std::max(slots.size(), cookies.size()); ++i) {
    if (i >= slots.size()) {
      AddSlot(target, cookies[i], free_rank++);
    } else if (i >= cookies.size()) {
      Drop(slots[i]);
    } else {
      all[slots[i]].cookie = cookies[i];
    }
  }
}

void Planner::AddSlot(uint32_t target, uint64_t cookie, uint32_t rank) {
  Slot slot;
  slot.rank = rank;
  slot.target = target;
  slot.cookie = cookie;
  plan_.next.slots.push_back(slot);
}

void Planner::NoteCookie(size_t slot) {
  const Slot& now = plan_.next.slots[slot];
  recookied_[slot] =
      now.target != kNoTarget && now.cookie != old_.slots[slot].cookie;
  plan_.recookied += recookied_[slot];
}

uint32_t Planner::WantedPrograms(const Slot& slot) const {
  if (slot.target == kNoTarget) return 0;
  const ProgramChoice choice =
      ChoosePrograms(plan_.next, targets()[slot.target]);
  return BitOf(choice.at_return) | BitOf(choice.at_entry);
}

void Planner::KeepOrChange(uint32_t link) {
  const LinkMembers& members = old_.members[link];
  ChangedLink changed;
  changed.link = link;
  changed.rest.program = members.program;
  changed.rest.module = members.module;
  changed.rest.rank = members.rank;
  const uint32_t bit = BitOf(members.program);
  bool recookied = false;
  for (uint32_t slot : members.slots) {
    if ((WantedPrograms(plan_.next.slots[slot]) & bit) == 0) continue;
    changed.rest.slots.push_back(slot);
    recookied |= recookied_[slot];
    has_[slot] |= bit;
  }
  if (!recookied && changed.rest.slots.size() == members.slots.size()) return;
  changed.close_first = !changed.rest.slots.empty() &&
                        ClosesFirst(old_.programs[members.program].kind);
  plan_.changed.push_back(std::move(changed));
}

// New slots, and those of functions that fit another program now.
void Planner::AddMissing() {
  for (uint32_t i = 0; i < plan_.next.slots.size(); ++i) {
    const Slot& slot = plan_.next.slots[i];
    if (slot.target == kNoTarget || slot.refused) continue;
    const Target& target = targets()[slot.target];
    const ProgramChoice choice = ChoosePrograms(plan_.next, target);
    const uint32_t missing = WantedPrograms(slot) & ~has_[i];
    if (missing == 0) continue;
    for (uint32_t program : {choice.at_return, choice.at_entry}) {
      if ((missing & BitOf(program)) == 0) continue;
      added_.Add(program, slot.rank, target.module, i);
    }
  }
  plan_.added = std::move(added_).Take();
}

void Planner::Finish() {
  for (Slot& slot : plan_.next.slots) {
    plan_.next.targets.push_back(slot.target);
    if (slot.target == kNoTarget) continue;
    const uint64_t addr = targets()[slot.target].addr;
    if (addr != 0) slot.addr = addr;
  }
  for (RefusedFunction& refused : plan_.next.refused) {
    refused.target = plan_.next.slots[refused.slot].target;
  }
}

}  // namespace

bool ClosesFirst(Kind kind) { return IsTracingMulti(kind); }

UpdatePlan PlanUpdate(const AttachmentState& state, const Resolution& newer,
                      const UpdateOptions& options) {
  return Planner(state, newer, options).Run();
}

}  // namespace ksweep
