#include "lib/attach/linking/group_linker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/attach/linking/link_info.h"
#include "lib/attach/linking/name_retry.h"
#include "lib/attach/linking/parallel_links.h"
#include "lib/base/errno_status.h"

namespace ksweep {

absl::Status GroupLinker::Run(const LinkGroup& group) && {
  group_ = &group;
  const absl::Status opened = factory_.Open({group.module, group.rank});
  if (absl::IsNotFound(opened)) return RefuseAll(ErrnoOf(opened));
  if (!opened.ok()) return opened;
  if (factory_.is_parallel()) return RunParallel();
  const size_t limit =
      std::min<size_t>(options_.max_per_link, factory_.max_per_link());
  const absl::Status status = LinkAccepted(
      *this, group.slots, limit, state_.programs[group.program].works);
  if (status.ok() || group.slots.size() != 1) return status;
  if (LinkByName(group.slots.front(), ErrnoOf(status))) return absl::OkStatus();
  return Annotate(status, FunctionName(TargetOf(group.slots.front())));
}

// Whether it is the call that is refused, and not the functions: none was
// accepted, and enough were tried, or all.
absl::Status GroupLinker::CheckCall(size_t refused_cnt,
                                    const absl::Status& refused) const {
  if (state_.programs[group_->program].works) return absl::OkStatus();
  const bool tried_all = refused_cnt == group_->slots.size();
  if (refused_cnt < kMaxProbes && !tried_all) return absl::OkStatus();
  return Annotate(
      refused,
      absl::StrFormat("the call is refused for each of %d "
                      "functions, the last of them %s",
                      refused_cnt,
                      FunctionName(TargetOf(group_->slots[refused_cnt - 1]))));
}

// One function after the other, each with its own answer.
absl::Status GroupLinker::RunParallel() {
  const std::vector<uint32_t>& slots = group_->slots;
  ParallelLinks links(slots.size(), options_.threads, [&](size_t i) {
    const AttachPoint point = PointOf(slots[i]);
    return factory_.MakeLink({&point, 1});
  });
  size_t refused_cnt = 0;
  for (uint32_t slot : slots) {
    absl::Status status = ReportProgress();
    if (!status.ok()) return status;
    absl::StatusOr<Link> link = links.Take();
    if (link.ok()) {
      Keep(*std::move(link), {&slot, 1});
      continue;
    }
    const int err = ErrnoOf(link.status());
    if (FaultOf(err) != Fault::kTarget) {
      return Annotate(link.status(), FunctionName(TargetOf(slot)));
    }
    ++refused_cnt;
    status = CheckCall(refused_cnt, link.status());
    if (status.ok())
      status = RefuseWith(slot, err, std::string(link.status().message()));
    if (!status.ok()) return status;
  }
  AddReport(links.Report(), &state_.report.on_threads);
  return absl::OkStatus();
}

absl::Status GroupLinker::RefuseAll(int err) {
  for (uint32_t slot : group_->slots) {
    const absl::Status status = Refuse(slot, err);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<Link> GroupLinker::MakeLink(absl::Span<const uint32_t> slots) {
  const absl::Status status = ReportProgress();
  if (!status.ok()) return status;
  points_.clear();
  points_.reserve(slots.size());
  for (uint32_t slot : slots) points_.push_back(PointOf(slot));
  return factory_.MakeLink(points_);
}

AttachPoint GroupLinker::PointOf(uint32_t slot) const {
  const Target& target = TargetOf(slot);
  AttachPoint point;
  point.addr = target.addr;
  point.name = target.name;
  point.module = target.module;
  point.cookie = state_.slots[slot].cookie;
  point.btf_id = target.btf_id;
  point.by_name = state_.resolution.by_name();
  return point;
}

bool GroupLinker::IsTrusted(uint32_t slot) const {
  const Target& target = TargetOf(slot);
  // A module may be on its way out.
  return !target.untested && target.module.empty();
}

void GroupLinker::Keep(Link link, absl::Span<const uint32_t> slots) {
  for (uint32_t slot : slots) {
    // One that is refused at the entry may be attached at the return.
    state_.slots[slot].attached = !state_.slots[slot].refused;
  }
  state_.programs[group_->program].works = true;
  state_.links.push_back(std::move(link));
  state_.members.push_back({group_->program,
                            group_->module,
                            group_->rank,
                            {slots.begin(), slots.end()}});
  progress_.attached += slots.size();
}

bool GroupLinker::LinkByName(uint32_t slot, int err) {
  const Kind kind = state_.programs[group_->program].kind;
  if (!options_.retry_by_name ||
      !CanRetryByName(state_.resolution, TargetOf(slot), kind, err)) {
    return false;
  }
  AttachPoint point = PointOf(slot);
  point.by_name = true;
  absl::StatusOr<Link> link = factory_.MakeLink({&point, 1});
  if (!link.ok()) return false;
  const absl::StatusOr<LinkInfo> info =
      ReadLinkInfo(*state_.sys, link->fd(), LinkDetail::kFunctions);
  if (info.ok() && info->addrs.size() == 1) {
    state_.slots[slot].addr = info->addrs.front();
  }
  Keep(*std::move(link), {&slot, 1});
  return true;
}

absl::Status GroupLinker::Refuse(uint32_t slot, int err) {
  if (LinkByName(slot, err)) return absl::OkStatus();
  return RefuseWith(slot, err, factory_.FunctionRefusal(err));
}

absl::Status GroupLinker::RefuseWith(uint32_t slot, int err,
                                     std::string reason) {
  const Target& target = TargetOf(slot);
  state_.slots[slot].attached = false;
  state_.slots[slot].refused = true;
  RefusedFunction refused;
  refused.slot = slot;
  refused.target = state_.slots[slot].target;
  refused.kind = state_.programs[group_->program].kind;
  refused.err = err;
  refused.function = FunctionName(target);
  refused.reason = std::move(reason);
  return refusals_.Add(std::move(refused), target.untested);
}

absl::Status GroupLinker::ReportProgress() const {
  if (!options_.progress ||
      options_.progress(progress_.attached, progress_.total)) {
    return absl::OkStatus();
  }
  return absl::CancelledError(absl::StrFormat(
      "AttachOptions::progress stopped after %d of %d functions; all are "
      "detached again",
      progress_.attached, progress_.total));
}

}  // namespace ksweep
