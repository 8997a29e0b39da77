#include "lib/attach/live/update.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "ksweep/kind.h"
#include "lib/attach/linking/arrange.h"
#include "lib/base/abseil.h"
#include "lib/base/clock.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

absl::Status CheckUpdatable(const AttachmentState& state) {
  if (!state.options.updatable) {
    return absl::FailedPreconditionError(
        "the attachment cannot be changed; attach with "
        "AttachOptions::updatable");
  }
  if (state.programs.empty()) {
    return absl::FailedPreconditionError(
        "the attachment was detached; attach again");
  }
  if (!state.pin_dir.empty()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the attachment is pinned in %s, and a pinned link outlives its "
        "descriptor; Unpin() it, and pin it again afterwards",
        state.pin_dir));
  }
  return absl::OkStatus();
}

absl::Status CheckUpdate(const AttachmentState& state, const Resolution& newer,
                         const UpdateOptions& options) {
  const absl::Status status = CheckUpdatable(state);
  if (!status.ok()) return status;
  for (const AttachedProgram& program : state.programs) {
    if (newer.kinds().Has(program.kind)) continue;
    return absl::FailedPreconditionError(absl::StrFormat(
        "the newer resolution was not made for %s, which is attached; add it "
        "to ResolveOptions::kinds",
        Av(KindName(program.kind))));
  }
  if (options.pause && state.options.ready == nullptr) {
    return absl::InvalidArgumentError(
        "UpdateOptions::pause needs AttachOptions::ready, which was not given");
  }
  return absl::OkStatus();
}

// Slots to make links for, by program.
std::vector<size_t> CountSlots(const UpdatePlan& plan) {
  std::vector<size_t> cnt(plan.next.programs.size());
  for (const ChangedLink& changed : plan.changed) {
    cnt[changed.rest.program] += changed.rest.slots.size();
  }
  for (const LinkGroup& group : plan.added) {
    cnt[group.program] += group.slots.size();
  }
  return cnt;
}

size_t Sum(const std::vector<size_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), size_t{0});
}

// Takes out of `items` those at `gone`, ascending.
template <typename T>
void EraseAt(absl::Span<const uint32_t> gone, std::vector<T>* items) {
  std::vector<T> left;
  size_t next = 0;
  for (uint32_t i = 0; i < items->size(); ++i) {
    if (next < gone.size() && gone[next] == i) {
      ++next;
    } else {
      left.push_back(std::move((*items)[i]));
    }
  }
  *items = std::move(left);
}

// Closes the links at `gone`, ascending: entries, made after returns, go first.
void CloseLinks(AttachmentState& state, absl::Span<const uint32_t> gone) {
  for (auto link = gone.rbegin(); link != gone.rend(); ++link) {
    // It can fail only in ways that leave nothing to be done.
    state.links[*link].Detach().IgnoreError();
  }
  EraseAt(gone, &state.links);
  EraseAt(gone, &state.members);
}

template <typename T>
void MoveToEnd(std::vector<T>& from, std::vector<T>* to) {
  to->insert(to->end(), std::make_move_iterator(from.begin()),
             std::make_move_iterator(from.end()));
}

// True if the slot's function is one of `module`.
bool IsOf(std::string_view module, const AttachmentState& state,
          uint32_t slot) {
  const uint32_t target = state.slots[slot].target;
  return target != kNoTarget &&
         state.resolution.targets()[target].module == module;
}

// The links to functions of `module`, which have to be for nothing else.
absl::StatusOr<std::vector<uint32_t>> LinksOf(std::string_view module,
                                              const AttachmentState& state) {
  std::vector<uint32_t> links;
  for (uint32_t i = 0; i < state.members.size(); ++i) {
    const std::vector<uint32_t>& slots = state.members[i].slots;
    const auto cnt =
        std::count_if(slots.begin(), slots.end(),
                      [&](uint32_t slot) { return IsOf(module, state, slot); });
    if (cnt == 0) continue;
    if (static_cast<size_t>(cnt) != slots.size()) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "a link is for functions of module '%s' and for others, made by an "
          "attachment without AttachOptions::updatable; attach again",
          Av(module)));
    }
    links.push_back(i);
  }
  return links;
}

// False if there are none.
bool DropSlotsOf(std::string_view module, AttachmentState& state,
                 UpdateReport* report) {
  bool found = false;
  for (uint32_t i = 0; i < state.slots.size(); ++i) {
    Slot& slot = state.slots[i];
    if (!IsOf(module, state, i)) {
      report->kept += slot.attached;
      continue;
    }
    found = true;
    report->dropped += slot.attached;
    slot.target = kNoTarget;
    slot.attached = false;
    state.targets[i] = kNoTarget;
  }
  for (RefusedFunction& refused : state.refused) {
    refused.target = state.slots[refused.slot].target;
  }
  return found;
}

}  // namespace

Updater::Updater(AttachmentState& state, const Resolution& newer,
                 const UpdateOptions& options)
    : start_ns_(NowNs()),
      state_(state),
      update_options_(options),
      options_(state.options),
      bpf_(*state.sys, meter_),
      perf_(*state.perf, meter_),
      plan_(PlanUpdate(state, newer, options)),
      progress_{0, Sum(CountSlots(plan_))},
      refusals_(options_, progress_.total) {
  options_.progress = options.progress;
}

absl::StatusOr<UpdateReport> Updater::Run() && {
  absl::Status status = Prepare();
  if (!status.ok()) return status;
  if (update_options_.pause) SetReady(options_, false);
  status = LinkAll();
  if (status.ok()) {
    CountFunctions();
    CountDisturbed();
    Commit();
  } else {
    status = Undo(status);
  }
  if (update_options_.pause) SetReady(options_, true);
  if (!status.ok()) return status;
  report_.total_ns = NowNs() - start_ns_;
  return std::move(report_);
}

absl::Status Updater::Prepare() {
  const absl::Status status = CheckSlots();
  return status.ok() ? MakeFactories() : status;
}

absl::Status Updater::CheckSlots() const {
  const size_t cnt = plan_.next.slots.size();
  const uint32_t max = update_options_.max_slots;
  if (max == 0 || cnt <= max) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the update needs %d slots, and UpdateOptions::max_slots is %d; slots of "
      "dropped functions are not used again, so attach anew for slots from 0",
      cnt, max));
}

// Of the programs that something is linked to.
absl::Status Updater::MakeFactories() {
  const std::vector<size_t> cnt = CountSlots(plan_);
  factories_.resize(cnt.size());
  for (size_t i = 0; i < cnt.size(); ++i) {
    if (cnt[i] == 0) continue;
    const AttachedProgram& program = state_.programs[i];
    factories_[i] =
        MakeLinkFactory({bpf_, perf_, state_.files}, program, options_);
    const absl::Status status = factories_[i]->Reserve(cnt[i]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Updater::LinkAll() {
  for (LinkGroup& group : NewGroups()) {
    const absl::Status status = LinkNext(std::move(group));
    if (!status.ok()) return status;
  }
  // Before anything is closed.
  absl::Status status = refusals_.Check();
  for (const ChangedLink& changed : plan_.changed) {
    if (status.ok() && changed.close_first) status = ReplaceClosed(changed);
  }
  return status.ok() ? refusals_.Check() : status;
}

// What can be linked beside the old links; returns before entries.
std::vector<LinkGroup> Updater::NewGroups() const {
  std::vector<LinkGroup> groups;
  for (const ChangedLink& changed : plan_.changed) {
    if (!changed.close_first) groups.push_back(changed.rest);
  }
  groups.insert(groups.end(), plan_.added.begin(), plan_.added.end());
  const auto role = [this](const LinkGroup& group) {
    return RoleOf(state_.programs[group.program].kind);
  };
  std::stable_sort(groups.begin(), groups.end(),
                   [&role](const LinkGroup& a, const LinkGroup& b) {
                     return role(a) < role(b);
                   });
  return groups;
}

absl::Status Updater::LinkNext(LinkGroup group) {
  std::erase_if(group.slots,
                [this](uint32_t slot) { return IsRefusedNow(slot); });
  if (group.slots.empty()) return absl::OkStatus();
  return GroupLinker(plan_.next, *factories_[group.program], refusals_,
                     options_, progress_)
      .Run(group);
}

// One that was refused at its entry before may be attached at its return.
bool Updater::IsRefusedNow(uint32_t slot) const {
  const bool before = slot < state_.slots.size() && state_.slots[slot].refused;
  return plan_.next.slots[slot].refused && !before;
}

absl::Status Updater::ReplaceClosed(const ChangedLink& changed) {
  const int64_t start_ns = NowNs();
  closed_.push_back(changed.link);
  absl::Status status = state_.links[changed.link].Detach();
  if (status.ok()) status = LinkNext(changed.rest);
  report_.gap_ns = std::max(report_.gap_ns, NowNs() - start_ns);
  return status;
}

// Back to what was. Returns `failure` with what became of it.
absl::Status Updater::Undo(const absl::Status& failure) {
  plan_.next.links.clear();
  options_.progress = nullptr;
  options_.on_refused = OnRefused::kSkip;
  absl::Status status =
      Annotate(failure, "not updated, the attachment is as before");
  for (uint32_t link : closed_) {
    const absl::Status restored = Restore(link);
    if (restored.ok()) continue;
    status = Annotate(
        failure,
        absl::StrFormat("not updated, and functions of a link that had to be "
                        "closed first are no longer attached (%s)",
                        restored.message()));
  }
  EraseAt(closed_, &state_.links);
  EraseAt(closed_, &state_.members);
  return status;
}

// Links what a closed link was for again. What is refused now is refused.
absl::Status Updater::Restore(uint32_t link) {
  const LinkMembers& members = state_.members[link];
  const LinkGroup group = {members.program, members.module, members.rank,
                           members.slots};
  for (uint32_t slot : group.slots) state_.slots[slot].attached = false;
  Refusals refusals(options_, group.slots.size());
  const absl::Status status = GroupLinker(state_, *factories_[group.program],
                                          refusals, options_, progress_)
                                  .Run(group);
  std::vector<RefusedFunction> refused = std::move(refusals).Take();
  const size_t refused_cnt = refused.size();
  MoveToEnd(refused, &state_.refused);
  if (status.ok() && refused_cnt > 0) {
    return absl::InternalError(
        absl::StrFormat("%d are refused now", refused_cnt));
  }
  return status;
}

void Updater::CountFunctions() {
  for (size_t i = 0; i < plan_.next.slots.size(); ++i) {
    const bool before = i < state_.slots.size() && state_.slots[i].attached;
    const bool now = plan_.next.slots[i].attached;
    report_.added += now && !before;
    report_.kept += now && before;
    report_.dropped += before && plan_.next.slots[i].target == kNoTarget;
  }
  report_.recookied = plan_.recookied;
  report_.links_made = static_cast<uint32_t>(plan_.next.links.size());
  report_.links_closed = static_cast<uint32_t>(plan_.changed.size());
  report_.syscalls = meter_.calls();
  report_.attach_ns = meter_.ns();
}

void Updater::CountDisturbed() {
  std::vector<bool> doubled(plan_.next.slots.size());
  std::vector<bool> interrupted(plan_.next.slots.size());
  for (const ChangedLink& changed : plan_.changed) {
    std::vector<bool>& disturbed = changed.close_first ? interrupted : doubled;
    for (uint32_t slot : changed.rest.slots) {
      disturbed[slot] = plan_.next.slots[slot].attached;
    }
  }
  report_.doubled = std::count(doubled.begin(), doubled.end(), true);
  report_.interrupted =
      std::count(interrupted.begin(), interrupted.end(), true);
}

void Updater::Commit() {
  std::vector<uint32_t> gone;
  for (const ChangedLink& changed : plan_.changed) gone.push_back(changed.link);
  CloseLinks(state_, gone);

  AttachmentState& next = plan_.next;
  MoveToEnd(next.links, &state_.links);
  MoveToEnd(next.members, &state_.members);
  state_.resolution = next.resolution;
  state_.slots = std::move(next.slots);
  state_.targets = std::move(next.targets);
  state_.refused = std::move(next.refused);
  report_.refused = std::move(refusals_).Take();
  state_.refused.insert(state_.refused.end(), report_.refused.begin(),
                        report_.refused.end());
  std::sort(state_.refused.begin(), state_.refused.end(),
            [](const RefusedFunction& a, const RefusedFunction& b) {
              return a.slot < b.slot;
            });
  for (size_t i = 0; i < next.programs.size(); ++i) {
    state_.programs[i].works = next.programs[i].works;
  }
  state_.report.syscalls += report_.syscalls;
  state_.report.attach_ns += report_.attach_ns;
  CountAttached(state_);
}

absl::StatusOr<UpdateReport> UpdateAttachment(AttachmentState& state,
                                              const Resolution& newer,
                                              const UpdateOptions& options) {
  const absl::Status status = CheckUpdate(state, newer, options);
  if (!status.ok()) return status;
  return Updater(state, newer, options).Run();
}

absl::StatusOr<UpdateReport> ReleaseModule(AttachmentState& state,
                                           std::string_view module) {
  const int64_t start_ns = NowNs();
  const absl::Status status = CheckUpdatable(state);
  if (!status.ok()) return status;
  if (module.empty()) {
    return absl::InvalidArgumentError(
        "the core kernel cannot be released; name a module");
  }
  const absl::StatusOr<std::vector<uint32_t>> links = LinksOf(module, state);
  if (!links.ok()) return links.status();
  UpdateReport report;
  if (!DropSlotsOf(module, state, &report)) {
    return absl::NotFoundError(
        absl::StrFormat("nothing of module '%s' is attached", Av(module)));
  }
  CloseLinks(state, *links);
  report.links_closed = static_cast<uint32_t>(links->size());
  CountAttached(state);
  report.total_ns = NowNs() - start_ns;
  return report;
}

}  // namespace ksweep
