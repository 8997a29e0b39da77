#include "lib/attach/live/taken_over.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

absl::Status NotTold(const LinkInfo& info, Kind kind) {
  if (info.btf_id != 0) {
    return absl::UnimplementedError(absl::StrFormat(
        "a link of kind %s does not tell the address of its function",
        Av(KindName(kind))));
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "the kernel does not tell the functions of the link: %s",
      info.addrs_hidden
          ? "it hides addresses (set kernel.kptr_restrict to 0 or 1, and run "
            "as root)"
          : "that needs Linux 6.6, their cookies Linux 6.9"));
}

absl::StatusOr<UniqueFd> OpenProgram(BpfSys& sys, uint32_t id) {
  IdAttr attr;
  attr.id = id;
  const int result = sys.Bpf(kBpfProgGetFdById, &attr, sizeof(attr));
  if (result >= 0) return UniqueFd(result);
  return ErrnoStatus(
      -result,
      absl::StrFormat("opening BPF program %d of a pinned link, for later "
                      "updates (needs CAP_SYS_ADMIN)",
                      id));
}

}  // namespace

TakenOver::TakenOver(BpfSys& sys, const Resolution& resolution,
                     const AttachOptions& options)
    : state_(std::make_unique<AttachmentState>()) {
  state_->sys = &sys;
  state_->resolution = resolution;
  state_->options.ready = options.ready;
  state_->options.updatable = options.updatable;
}

absl::Status TakenOver::Add(Link link, Kind kind) {
  if (state_->resolution.by_name()) {
    return absl::FailedPreconditionError(
        "the resolution is by name, but links tell addresses; resolve where "
        "the kernel shows them");
  }
  absl::StatusOr<LinkInfo> info =
      ReadLinkInfo(*state_->sys, link.fd(), LinkDetail::kFunctions);
  if (!info.ok()) return info.status();
  if (info->addrs.empty() || info->cookies.empty()) {
    return NotTold(*info, kind);
  }
  absl::StatusOr<uint32_t> program = ProgramOf(*info, kind);
  if (!program.ok()) return program.status();
  const auto index = static_cast<uint32_t>(state_->links.size());
  for (size_t i = 0; i < info->addrs.size(); ++i) {
    found_.push_back({info->addrs[i], info->cookies[i], index});
  }
  state_->links.push_back(std::move(link));
  state_->members.emplace_back();
  state_->members.back().program = *program;
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> TakenOver::ProgramOf(const LinkInfo& info, Kind kind) {
  for (uint32_t i = 0; i < state_->programs.size(); ++i) {
    if (state_->programs[i].kind == kind && prog_ids_[i] == info.prog_id) {
      return i;
    }
  }
  AttachedProgram program;
  program.kind = kind;
  if (state_->options.updatable) {
    absl::StatusOr<UniqueFd> fd = OpenProgram(*state_->sys, info.prog_id);
    if (!fd.ok()) return fd.status();
    program.own = *std::move(fd);
    program.fd = program.own.get();
  }
  state_->programs.push_back(std::move(program));
  prog_ids_.push_back(info.prog_id);
  return static_cast<uint32_t>(state_->programs.size() - 1);
}

// True if a function's cookie is its slot: the requests gave none, and no two
// functions have the same, but for the entry and the return of one.
bool TakenOver::CookiesAreSlots() const {
  if (state_->resolution.has_cookies()) return false;
  std::set<std::pair<uint64_t, uint64_t>> addr_of_cookie;
  std::set<uint64_t> cookies;
  for (const Found& found : found_) {
    if (found.cookie >= found_.size() + kMaxPerLink) return false;
    addr_of_cookie.emplace(found.cookie, found.addr);
    cookies.insert(found.cookie);
  }
  return addr_of_cookie.size() == cookies.size();
}

uint32_t TakenOver::TargetAt(uint64_t addr) const {
  const absl::StatusOr<const Target*> target =
      state_->resolution.FindByIp(addr);
  if (!target.ok()) return kNoTarget;
  return static_cast<uint32_t>(*target - state_->resolution.targets().data());
}

void TakenOver::SetSlot(uint32_t slot, const Found& found) {
  if (slot >= state_->slots.size()) {
    Slot none;
    none.target = kNoTarget;
    state_->slots.resize(slot + 1, none);
    state_->targets.resize(slot + 1, kNoTarget);
  }
  Slot& filled = state_->slots[slot];
  const uint32_t target = TargetAt(found.addr);
  filled.target = target;
  filled.addr = target == kNoTarget ? found.addr
                                    : state_->resolution.targets()[target].addr;
  filled.cookie = found.cookie;
  filled.attached = true;
  state_->targets[slot] = target;
  state_->members[found.link].slots.push_back(slot);
}

// The owner of each link, as updates want it.
void TakenOver::GroupByOwner() {
  for (LinkMembers& members : state_->members) {
    std::sort(members.slots.begin(), members.slots.end());
    const uint32_t target = state_->targets[members.slots.front()];
    if (target == kNoTarget) continue;
    members.module = std::string(state_->resolution.targets()[target].module);
  }
}

absl::StatusOr<std::unique_ptr<AttachmentState>> TakenOver::Finish() && {
  const bool by_cookie = CookiesAreSlots();
  // Without slots in the cookies: one for each function and cookie.
  std::set<std::pair<uint64_t, uint64_t>> known;
  std::vector<std::pair<uint64_t, uint64_t>> order;
  for (const Found& found : found_) {
    if (known.emplace(found.addr, found.cookie).second) {
      order.emplace_back(found.addr, found.cookie);
    }
  }
  std::sort(order.begin(), order.end());
  for (const Found& found : found_) {
    const auto place = std::lower_bound(order.begin(), order.end(),
                                        std::pair(found.addr, found.cookie));
    SetSlot(by_cookie ? static_cast<uint32_t>(found.cookie)
                      : static_cast<uint32_t>(place - order.begin()),
            found);
  }
  GroupByOwner();
  state_->report.kind = state_->programs.front().kind;
  state_->report.links = static_cast<uint32_t>(state_->links.size());
  for (const Slot& slot : state_->slots) {
    state_->report.attached += slot.attached;
  }
  return std::move(state_);
}

}  // namespace ksweep
