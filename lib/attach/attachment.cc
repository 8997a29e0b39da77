#include "ksweep/attachment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/attach/attachment_state.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

absl::StatusOr<LinkStats> ReadLinkStats(BpfSys& sys, const Link& link) {
  // Zeros where an older kernel writes nothing: it takes a longer buffer if
  // that is zero behind what it knows.
  KprobeMultiLinkInfo info;
  ObjInfoAttr attr;
  attr.bpf_fd = static_cast<uint32_t>(link.fd());
  attr.info_len = sizeof(info);
  attr.info = reinterpret_cast<uintptr_t>(&info);
  const int result = sys.Bpf(kBpfObjGetInfoByFd, &attr, sizeof(attr));
  if (result < 0) {
    return ErrnoStatus(
        -result,
        absl::StrFormat("asking for the info of BPF link fd %d", link.fd()));
  }
  return LinkStats{info.cnt, info.missed};
}

}  // namespace

std::string FunctionName(const Target& target) {
  if (target.module.empty()) return std::string(target.name);
  return absl::StrFormat("%s [%s]", Av(target.name), Av(target.module));
}

void CountAttached(AttachmentState& state) {
  AttachReport& report = state.report;
  report.attached = 0;
  for (const Slot& slot : state.slots) report.attached += slot.attached;
  report.kinds.clear();
  for (const LinkMembers& members : state.members) {
    const Kind kind = state.programs[members.program].kind;
    auto& kinds = report.kinds;
    auto place = std::find_if(
        kinds.begin(), kinds.end(),
        [kind](const KindReport& counted) { return counted.kind == kind; });
    if (place == kinds.end()) place = kinds.insert(kinds.end(), {kind, 0, 0});
    place->attached += members.slots.size();
    ++place->links;
  }
  report.kind = state.programs.front().kind;
  report.links = static_cast<uint32_t>(state.links.size());
}

void SetReady(const AttachOptions& options, bool ready) {
  // Read by programs on other processors; the system calls around order it.
  if (options.ready != nullptr) {
    __atomic_store_n(options.ready, ready, __ATOMIC_SEQ_CST);
  }
}

Attachment::Attachment() : state_(std::make_unique<AttachmentState>()) {}

Attachment::Attachment(std::unique_ptr<AttachmentState> state)
    : state_(std::move(state)) {}

Attachment::Attachment(Attachment&& other) noexcept
    : state_(std::exchange(other.state_, std::make_unique<AttachmentState>())) {
}

Attachment& Attachment::operator=(Attachment&& other) noexcept {
  // What was here goes with `incoming`.
  Attachment incoming(std::move(other));
  std::swap(state_, incoming.state_);
  return *this;
}

Attachment::~Attachment() {
  // Closing the links can fail only in ways that leave nothing to be done.
  if (!state_->links.empty()) Detach().IgnoreError();
}

Kind Attachment::kind() const { return state_->report.kind; }

const std::vector<Link>& Attachment::links() const { return state_->links; }

const Resolution& Attachment::resolution() const { return state_->resolution; }

const std::vector<uint32_t>& Attachment::targets() const {
  return state_->targets;
}

const std::vector<RefusedFunction>& Attachment::refused() const {
  return state_->refused;
}

bool Attachment::IsAttached(uint32_t slot) const {
  return slot < state_->slots.size() && state_->slots[slot].attached;
}

uint32_t Attachment::syscalls() const { return state_->report.syscalls; }

int64_t Attachment::attach_ns() const { return state_->report.attach_ns; }

AttachReport Attachment::Report() const {
  AttachReport report = state_->report;
  report.refused = state_->refused;
  return report;
}

absl::StatusOr<LinkStats> Attachment::ReadStats() const {
  LinkStats sum;
  for (const Link& link : state_->links) {
    absl::StatusOr<LinkStats> stats = ReadLinkStats(*state_->sys, link);
    if (!stats.ok()) return stats.status();
    sum.cnt += stats->cnt;
    sum.missed += stats->missed;
  }
  return sum;
}

absl::Status Attachment::Detach() {
  if (!state_->links.empty()) SetReady(state_->options, false);
  absl::Status first_error;
  for (Link& link : state_->links) {
    // The rest is closed whatever happens to one.
    const absl::Status status = link.Detach();
    if (first_error.ok()) first_error = status;
  }
  state_->links.clear();
  state_->members.clear();
  state_->programs.clear();
  return first_error;
}

}  // namespace ksweep
