#include "ksweep/attachment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/attach/attachment_state.h"
#include "lib/attach/linking/link_info.h"
#include "lib/attach/linking/parallel_links.h"
#include "lib/attach/live/pin.h"
#include "lib/attach/live/read_back.h"
#include "lib/attach/live/update.h"
#include "lib/attach/programs/prepare.h"
#include "lib/base/abseil.h"

namespace ksweep {
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

absl::Status DropLinks(AttachmentState& state) {
  // Where there is a link for each function the kernel waits at each.
  const bool one_by_one = std::any_of(
      state.programs.begin(), state.programs.end(),
      [](const AttachedProgram& program) { return IsOneByOne(program.kind); });
  return CloseLinks(state.links, one_by_one ? state.options.threads : 1);
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
  if (state_->links.empty() || !state_->pin_dir.empty()) return;
  // Closing the links can fail only in ways that leave nothing to be done.
  Detach().IgnoreError();
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
    const absl::StatusOr<LinkInfo> info =
        ReadLinkInfo(*state_->sys, link.fd(), LinkDetail::kCounts);
    if (!info.ok()) return info.status();
    sum.cnt += info->cnt;
    sum.missed += info->missed;
  }
  return sum;
}

absl::StatusOr<ReadBackReport> Attachment::ReadBack() const {
  return ksweep::ReadBack(*state_);
}

absl::Status Attachment::Pin(const std::string& dir) {
  return PinLinks(*state_, dir);
}

absl::Status Attachment::Unpin() { return UnpinLinks(*state_); }

const std::string& Attachment::pin_dir() const { return state_->pin_dir; }

absl::StatusOr<Attachment> Attachment::TakeOver(const std::string& dir,
                                                const Resolution& resolution,
                                                const AttachOptions& options) {
  absl::StatusOr<std::unique_ptr<AttachmentState>> state =
      TakeOverLinks(BpfSys::Kernel(), dir, resolution, options);
  if (!state.ok()) return state.status();
  return Attachment(*std::move(state));
}

absl::StatusOr<UpdateReport> Attachment::Update(const Resolution& newer,
                                                const UpdateOptions& options) {
  return UpdateAttachment(*state_, newer, options);
}

absl::StatusOr<UpdateReport> Attachment::Release(std::string_view module) {
  return ReleaseModule(*state_, module);
}

absl::Status Attachment::Detach() {
  if (!state_->links.empty()) SetReady(state_->options, false);
  absl::Status first_error = UnpinLinks(*state_);
  const absl::Status status = DropLinks(*state_);
  if (first_error.ok()) first_error = status;
  state_->members.clear();
  state_->programs.clear();
  return first_error;
}

}  // namespace ksweep
