#include "ksweep/attach.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/attach/attacher.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

std::string ToString(KindSet kinds) {
  std::string text;
  for (int i = 0; i < kKindCnt; ++i) {
    const Kind kind = static_cast<Kind>(i);
    if (!kinds.Has(kind)) continue;
    if (!text.empty()) text += ", ";
    text += KindName(kind);
  }
  return text.empty() ? "no kind" : text;
}

std::string NameOf(const Target& target) {
  if (target.module.empty()) return std::string(target.name);
  return absl::StrFormat("%s [%s]", Av(target.name), Av(target.module));
}

// The items of `slots`, ascending, in place if these are in a row, else copied
// to `picked`.
template <typename T>
absl::Span<const T> Pick(const std::vector<T>& items,
                         absl::Span<const uint32_t> slots,
                         std::vector<T>& picked) {
  if (slots.back() - slots.front() + 1 == slots.size()) {
    return absl::MakeConstSpan(items).subspan(slots.front(), slots.size());
  }
  picked.clear();
  for (uint32_t slot : slots) picked.push_back(items[slot]);
  return picked;
}

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

int MeteredBpfSys::Bpf(int cmd, void* attr, size_t size) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const int result = sys_.Bpf(cmd, attr, size);
  ns_ += std::chrono::nanoseconds(Clock::now() - start).count();
  ++calls_;
  return result;
}

absl::StatusOr<Attachment> Attacher::Attach(int prog_fd) && {
  absl::StatusOr<KindAbi> abi = FindKindAbi(options_.kind);
  if (!abi.ok()) return abi.status();
  abi_ = *abi;
  prog_fd_ = prog_fd;
  absl::Status status = CheckArguments();
  if (!status.ok()) return status;
  SelectTargets();
  if (slot_cnt() == 0) return NoTargets();
  status = CreateLinks();
  if (!status.ok()) return status;

  attachment_.kind_ = options_.kind;
  attachment_.sys_ = &sys_;
  attachment_.link_cnt_ = static_cast<uint32_t>(attachment_.links_.size());
  attachment_.syscalls_ = meter_.calls();
  attachment_.attach_ns_ = meter_.ns();
  return std::move(attachment_);
}

absl::Status Attacher::CheckArguments() const {
  if (options_.max_per_link == 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "AttachOptions::max_per_link is 0; it is 1 to %d", kMaxPerLink));
  }
  if (prog_fd_ < 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the program is not loaded: its descriptor is %d", prog_fd_));
  }
  if (!resolution_.kinds().Has(options_.kind)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the resolution was made for %s, not for %s; add it to "
        "ResolveOptions::kinds",
        ToString(resolution_.kinds()), Av(KindName(options_.kind))));
  }
  return absl::OkStatus();
}

void Attacher::SelectTargets() {
  const std::vector<Target>& targets = resolution_.targets();
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].kinds.Has(options_.kind)) AddSlot(static_cast<uint32_t>(i));
  }
}

void Attacher::AddSlot(uint32_t target_index) {
  const Target& target = resolution_.targets()[target_index];
  cookies_.push_back(resolution_.has_cookies() ? target.cookie : slot_cnt());
  if (resolution_.by_name()) {
    names_.push_back(target.name);
  } else {
    addrs_.push_back(target.addr);
  }
  attachment_.targets_.push_back(target_index);
}

absl::Status Attacher::NoTargets() const {
  return absl::InvalidArgumentError(absl::StrFormat(
      "nothing to attach to: of %d targets none fits %s (see "
      "Target::misfits); %d functions were left out (see "
      "Resolution::omissions()), %d requests found none (see unmatched())",
      resolution_.targets().size(), Av(KindName(options_.kind)),
      resolution_.omissions().size(), resolution_.unmatched().size()));
}

absl::Status Attacher::CreateLinks() {
  std::vector<uint32_t> slots(slot_cnt());
  std::iota(slots.begin(), slots.end(), 0);
  absl::Status status = LinkAccepted(
      *this, std::move(slots), std::min(options_.max_per_link, kMaxPerLink));
  if (!status.ok()) {
    return slot_cnt() == 1 ? Annotate(status, NameOf(TargetOf(0))) : status;
  }

  std::vector<RefusedFunction>& refused = attachment_.refused_;
  std::sort(refused.begin(), refused.end(),
            [](const RefusedFunction& a, const RefusedFunction& b) {
              return a.slot < b.slot;
            });
  if (options_.on_refused == OnRefused::kFail && !refused.empty()) {
    return RefusedError(
        "all others are accepted, see AttachOptions::on_refused");
  }
  return absl::OkStatus();
}

absl::StatusOr<Link> Attacher::MakeLink(absl::Span<const uint32_t> slots) {
  absl::Status status = ReportProgress();
  if (!status.ok()) return status;
  return CreateKprobeMultiLink(meter_, CallFor(slots));
}

bool Attacher::IsTrusted(uint32_t slot) const {
  const Target& target = TargetOf(slot);
  // A module may be on its way out.
  return !target.untested && target.module.empty();
}

void Attacher::Keep(Link link, size_t cnt) {
  attachment_.links_.push_back(std::move(link));
  attached_cnt_ += cnt;
}

absl::Status Attacher::Refuse(uint32_t slot, int err) {
  const Target& target = TargetOf(slot);
  RefusedFunction refused;
  refused.slot = slot;
  refused.target = attachment_.targets_[slot];
  refused.err = err;
  refused.function = NameOf(target);
  refused.reason = FunctionRefusal(err);
  attachment_.refused_.push_back(std::move(refused));
  untested_refused_cnt_ += target.untested;
  return CheckRefusedCnt();
}

absl::Status Attacher::CheckRefusedCnt() const {
  const size_t cnt = attachment_.refused_.size();
  if (untested_refused_cnt_ > kMaxUntestedRefused) {
    return RefusedError(
        "too many that no list says are traceable; resolve "
        "with the kernel's filter list");
  }
  if (options_.on_refused == OnRefused::kFail && cnt >= kMaxNamedRefused) {
    return RefusedError("maybe more, see AttachOptions::on_refused");
  }
  if (options_.on_refused == OnRefused::kSkipUpTo &&
      cnt > options_.max_refused) {
    return RefusedError(
        absl::StrFormat("maybe more, and AttachOptions::max_refused is %d",
                        options_.max_refused));
  }
  return absl::OkStatus();
}

absl::Status Attacher::RefusedError(std::string_view remedy) const {
  const RefusedFunction& first = attachment_.refused_.front();
  // That it is not the call is known by now, so EINVAL means one thing only.
  const absl::StatusCode code = first.err == EINVAL
                                    ? absl::StatusCode::kNotFound
                                    : CodeOfErrno(first.err);
  return ErrnoStatus(
      first.err, code,
      absl::StrFormat("the kernel refuses %d of %d functions for %s: %s (%s; "
                      "%s)",
                      attachment_.refused_.size(), slot_cnt(),
                      Av(KindName(options_.kind)), NameRefused(), first.reason,
                      Av(remedy)));
}

// The first of the refused functions, for an error that has the first's errno.
std::string Attacher::NameRefused() const {
  const std::vector<RefusedFunction>& refused = attachment_.refused_;
  std::string text;
  for (size_t i = 0; i < refused.size() && i < kMaxNamedRefused; ++i) {
    absl::StrAppendFormat(&text, "%s%s", i == 0 ? "" : ", ",
                          refused[i].function);
    if (refused[i].err == refused[0].err) continue;
    absl::StrAppendFormat(&text, " (%s)", ErrnoText(refused[i].err));
  }
  if (refused.size() > kMaxNamedRefused) text += ", …";
  return text;
}

absl::Status Attacher::ReportProgress() const {
  if (!options_.progress || options_.progress(attached_cnt_, slot_cnt())) {
    return absl::OkStatus();
  }
  return absl::CancelledError(absl::StrFormat(
      "AttachOptions::progress stopped after %d of %d functions; all are "
      "detached again",
      attached_cnt_, slot_cnt()));
}

KprobeMultiCall Attacher::CallFor(absl::Span<const uint32_t> slots) {
  KprobeMultiCall call;
  call.abi = abi_;
  call.prog_fd = prog_fd_;
  if (resolution_.by_name()) {
    call.names = Pick<std::string_view>(names_, slots, picked_names_);
  } else {
    call.addrs = Pick<uint64_t>(addrs_, slots, picked_addrs_);
  }
  call.cookies = Pick<uint64_t>(cookies_, slots, picked_cookies_);
  return call;
}

bool Attachment::IsAttached(uint32_t slot) const {
  const auto place =
      std::lower_bound(refused_.begin(), refused_.end(), slot,
                       [](const RefusedFunction& refused, uint32_t wanted) {
                         return refused.slot < wanted;
                       });
  const bool refused = place != refused_.end() && place->slot == slot;
  return slot < targets_.size() && !refused;
}

AttachReport Attachment::Report() const {
  AttachReport report;
  report.kind = kind_;
  report.attached = targets_.size() - refused_.size();
  report.refused = refused_;
  report.links = link_cnt_;
  report.syscalls = syscalls_;
  report.attach_ns = attach_ns_;
  return report;
}

absl::StatusOr<LinkStats> Attachment::ReadStats() const {
  LinkStats sum;
  for (const Link& link : links_) {
    absl::StatusOr<LinkStats> stats = ReadLinkStats(*sys_, link);
    if (!stats.ok()) return stats.status();
    sum.cnt += stats->cnt;
    sum.missed += stats->missed;
  }
  return sum;
}

absl::Status Attachment::Detach() {
  absl::Status first_error;
  for (Link& link : links_) {
    // The rest is closed whatever happens to one.
    const absl::Status status = link.Detach();
    if (first_error.ok()) first_error = status;
  }
  links_.clear();
  return first_error;
}

absl::StatusOr<Attachment> Attach(const Resolution& resolution,
                                  const bpf_program* prog,
                                  const AttachOptions& options) {
  if (prog == nullptr) return absl::InvalidArgumentError("no program given");
  absl::StatusOr<KindAbi> abi = FindKindAbi(options.kind);
  if (!abi.ok()) return abi.status();
  const absl::Status status = CheckProgram(*prog, *abi);
  if (!status.ok()) return status;
  return AttachFd(resolution, bpf_program__fd(prog), options);
}

absl::StatusOr<Attachment> AttachFd(const Resolution& resolution, int prog_fd,
                                    const AttachOptions& options) {
  return Attacher(BpfSys::Kernel(), resolution, options).Attach(prog_fd);
}

}  // namespace ksweep
