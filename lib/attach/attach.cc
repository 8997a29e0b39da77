#include "ksweep/attach.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <chrono>
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
  absl::Status status = CheckArguments(prog_fd);
  if (!status.ok()) return status;
  SelectTargets();
  if (slot_cnt() == 0) return NoTargets();
  status = CreateLinks(prog_fd);
  if (!status.ok()) return status;

  attachment_.kind_ = options_.kind;
  attachment_.sys_ = &sys_;
  attachment_.syscalls_ = meter_.calls();
  attachment_.attach_ns_ = meter_.ns();
  return std::move(attachment_);
}

absl::Status Attacher::CheckArguments(int prog_fd) {
  absl::StatusOr<KindAbi> abi = FindKindAbi(options_.kind);
  if (!abi.ok()) return abi.status();
  abi_ = *abi;
  if (options_.max_per_link == 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "AttachOptions::max_per_link is 0; it is 1 to %d", kMaxPerLink));
  }
  if (prog_fd < 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the program is not loaded: its descriptor is %d", prog_fd));
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

absl::Status Attacher::CreateLinks(int prog_fd) {
  const size_t per_link = std::min(options_.max_per_link, kMaxPerLink);
  for (size_t first = 0; first < slot_cnt(); first += per_link) {
    absl::Status status = ReportProgress(first);
    if (!status.ok()) return status;
    const size_t cnt = std::min(per_link, slot_cnt() - first);
    status = CreateLink(CallFor(prog_fd, first, cnt));
    if (!status.ok() && cnt == 1) {
      const Target& target = resolution_.targets()[attachment_.targets_[first]];
      return Annotate(status, target.name);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Attacher::CreateLink(const KprobeMultiCall& call) {
  absl::StatusOr<Link> link = CreateKprobeMultiLink(meter_, call);
  if (!link.ok()) return link.status();
  attachment_.links_.push_back(*std::move(link));
  return absl::OkStatus();
}

absl::Status Attacher::ReportProgress(size_t done) const {
  if (!options_.progress || options_.progress(done, slot_cnt())) {
    return absl::OkStatus();
  }
  return absl::CancelledError(absl::StrFormat(
      "AttachOptions::progress stopped after %d of %d functions; all are "
      "detached again",
      done, slot_cnt()));
}

KprobeMultiCall Attacher::CallFor(int prog_fd, size_t first, size_t cnt) const {
  KprobeMultiCall call;
  call.abi = abi_;
  call.prog_fd = prog_fd;
  if (resolution_.by_name()) {
    call.names = absl::MakeConstSpan(names_).subspan(first, cnt);
  } else {
    call.addrs = absl::MakeConstSpan(addrs_).subspan(first, cnt);
  }
  call.cookies = absl::MakeConstSpan(cookies_).subspan(first, cnt);
  return call;
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
