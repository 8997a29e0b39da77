#include "calltrace/tracer.h"

#include <string.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "common/bpf_errors.h"
#include "common/percpu.h"

namespace examples {

absl::StatusOr<Tracer> Tracer::Load(const std::vector<ksweep::Kind>& kinds,
                                    const TracerOptions& options) {
  auto bpf = OpenBothEnds<calltrace_bpf, calltrace_ctx_bpf>(
      calltrace_bpf__create_skeleton, kinds);
  if (!bpf.ok()) return bpf.status();
  Tracer tracer;
  tracer.bpf_ = *std::move(bpf);
  const int err = tracer.LoadObject(options);
  if (err != 0) return LoadError(-err);
  return tracer;
}

absl::Status Tracer::SetEntry(uint32_t slot) {
  const uint8_t yes = 1;
  const int err = bpf_map_update_elem(bpf_map__fd(bpf_->maps.is_entry), &slot,
                                      &yes, BPF_ANY);
  if (err == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat(
      "cannot tell the BPF program its entry functions: %s", strerror(-err)));
}

absl::StatusOr<std::vector<uint64_t>> Tracer::ReadLost() const {
  absl::StatusOr<std::vector<uint64_t>> lost =
      SumPerCpu(bpf_map__fd(bpf_->maps.lost), CALLTRACE_LOST_CNT);
  if (lost.ok()) (*lost)[CALLTRACE_LOST_THREADS] += bpf_->bss->lost_entries;
  return lost;
}

int Tracer::LoadObject(const TracerOptions& options) {
  bpf_->rodata->only_pid = options.only_pid;
  bpf_->rodata->own_pid = static_cast<uint32_t>(getpid());
  bpf_->rodata->wakeup_bytes = options.buffer_bytes / 4;
  bpf_->rodata->max_depth = options.max_depth;
  int err = bpf_map__set_max_entries(bpf_->maps.is_entry, options.function_cnt);
  if (err == 0)
    err = bpf_map__set_max_entries(bpf_->maps.calls, options.buffer_bytes);
  if (err == 0) err = calltrace_bpf__load(bpf_.get());
  return err;
}

}  // namespace examples
