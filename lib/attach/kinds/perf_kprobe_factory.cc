#include "lib/attach/kinds/perf_kprobe_factory.h"

#include "absl/strings/str_format.h"
#include "lib/attach/kinds/kprobe_pmu.h"
#include "lib/base/abseil.h"

namespace ksweep {

absl::Status PerfKprobeFactory::FindPmu() {
  if (kprobes_.has_value()) return absl::OkStatus();
  const absl::StatusOr<KprobePmu> pmu = ReadKprobePmu(files_);
  if (!pmu.ok()) return pmu.status();
  kprobes_.emplace(bpf_, perf_, *pmu);
  return absl::OkStatus();
}

absl::Status PerfKprobeFactory::Reserve(size_t cnt) {
  const absl::Status status = FindPmu();
  if (!status.ok()) return status;
  const std::string what = absl::StrFormat("%s on %d functions, one by one",
                                           Av(KindName(kind_)), cnt);
  return ReserveFds(perf_, kFdsPerPerfKprobe * cnt, what, raise_);
}

absl::StatusOr<Link> PerfKprobeFactory::MakeLink(
    absl::Span<const AttachPoint> points) {
  if (points.size() != 1) {
    return absl::InternalError(
        absl::StrFormat("a link of kind %s has one function, not %d",
                        Av(KindName(kind_)), points.size()));
  }
  const absl::Status status = FindPmu();
  if (!status.ok()) return status;
  const AttachPoint& point = points.front();
  PerfKprobeCall call;
  call.kind = kind_;
  call.prog_fd = prog_fd_;
  call.addr = point.by_name ? 0 : point.addr;
  call.name = point.name;
  call.module = point.module;
  call.cookie = point.cookie;
  return kprobes_->Attach(call);
}

}  // namespace ksweep
