#include "call_counter.h"

#include <bpf/libbpf.h>
#include <errno.h>

#include <optional>
#include <string>

#include "absl/flags/flag.h"
#include "common/bpf_errors.h"
#include "common/percpu.h"
#include "common/requests.h"
#include "funccount.skel.h"

namespace examples {

using ksweep::Kind;

void CallCounter::Destroy::operator()(funccount_bpf* bpf) const {
  funccount_bpf__destroy(bpf);
}

CallCounter::CallCounter() : bpf_(funccount_bpf__open()) {}

bpf_program* CallCounter::prog() const { return bpf_->progs.count_call; }

absl::StatusOr<CallCounter> CallCounter::Load(Kind kind, size_t slot_cnt) {
  CallCounter counter;
  if (counter.bpf_ == nullptr) return LoadError(errno);
  absl::Status status = ksweep::PrepareProgram(counter.prog(), kind);
  if (!status.ok()) return status;
  counter.bpf_->rodata->only_pid = absl::GetFlag(FLAGS_pid);
  int err = bpf_map__set_max_entries(counter.bpf_->maps.calls,
                                     static_cast<uint32_t>(slot_cnt));
  if (err == 0) err = funccount_bpf__load(counter.bpf_.get());
  if (err != 0) return LoadError(-err);
  return counter;
}

absl::StatusOr<ksweep::Attachment> CallCounter::Attach(
    const ksweep::Resolution& resolution, ksweep::AttachOptions options) {
  options.ready = &bpf_->bss->ready;
  return ksweep::Attach(resolution, prog(), options);
}

absl::StatusOr<std::vector<uint64_t>> CallCounter::ReadCalls(
    size_t slot_cnt) const {
  return SumPerCpu(bpf_map__fd(bpf_->maps.calls),
                   static_cast<uint32_t>(slot_cnt));
}

absl::StatusOr<Missed> CallCounter::ReadMissed(
    const ksweep::Attachment& attachment) const {
  return examples::ReadMissed(attachment, {{attachment.kind(), prog()}});
}

absl::StatusOr<Kind> ReadCounterKind() {
  const std::vector<std::string> names = absl::GetFlag(FLAGS_kind);
  if (names == std::vector<std::string>{kAutoKind}) return Kind::kKprobeMulti;
  const std::optional<Kind> kind =
      names.size() == 1 ? ksweep::ParseKind(names.front()) : std::nullopt;
  if (kind.has_value()) return *kind;
  return absl::InvalidArgumentError(
      "--kind: this program attaches by one kind, such as kprobe.multi");
}

}  // namespace examples
