#include "selftests/bench/attach/timing.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "lib/attach/linking/link_info.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/clock.h"

namespace ksweep::bench {
namespace {

void CountLinks(const std::vector<Link>& links, Timing* timing) {
  timing->links = links.size();
  for (const Link& link : links) timing->in_links += AskForCount(link.fd());
}

absl::Status DetachAll(std::vector<Link>* links) {
  for (Link& link : *links) {
    const absl::Status status = link.Detach();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

void Settle(const Amount& amount) { sleep(amount.settle_seconds); }

uint64_t AskForCount(int link_fd) {
  const absl::StatusOr<LinkInfo> info =
      ReadLinkInfo(BpfSys::Kernel(), link_fd, LinkDetail::kCounts);
  return info.ok() ? info->cnt : 0;
}

absl::StatusOr<Timing> TimeAttach(const Resolution& resolution,
                                  absl::Span<const KindProgram> programs,
                                  const AttachOptions& options) {
  Timing timing;
  int64_t start = NowNs();
  absl::StatusOr<Attachment> attachment = Attach(resolution, programs, options);
  timing.attach_ns = NowNs() - start;
  if (!attachment.ok()) return attachment.status();
  timing.functions = attachment->targets().size();
  CountLinks(attachment->links(), &timing);
  start = NowNs();
  const absl::Status status = attachment->Detach();
  timing.detach_ns = NowNs() - start;
  if (!status.ok()) return status;
  return timing;
}

absl::StatusOr<Timing> TimeLinks(
    size_t cnt, absl::FunctionRef<absl::StatusOr<Link>(size_t)> make) {
  Timing timing;
  std::vector<Link> links;
  links.reserve(cnt);
  int64_t start = NowNs();
  for (size_t i = 0; i < cnt; ++i) {
    absl::StatusOr<Link> link = make(i);
    if (!link.ok()) return link.status();
    links.push_back(*std::move(link));
  }
  timing.attach_ns = NowNs() - start;
  CountLinks(links, &timing);
  start = NowNs();
  const absl::Status status = DetachAll(&links);
  timing.detach_ns = NowNs() - start;
  if (!status.ok()) return status;
  return timing;
}

absl::Status CheckKernelCount(const Timing& timing, uint64_t wanted) {
  if (timing.in_links == 0 || timing.in_links == wanted) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrFormat("the kernel counts %d functions in links of %d",
                      timing.in_links, wanted));
}

}  // namespace ksweep::bench
