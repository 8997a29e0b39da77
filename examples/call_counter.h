// The BPF program that counts calls by slot, of funccount and watcher.

#ifndef KSWEEP_EXAMPLES_CALL_COUNTER_H_
#define KSWEEP_EXAMPLES_CALL_COUNTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tool.h"
#include "ksweep/attach.h"
#include "ksweep/kind.h"

struct funccount_bpf;

namespace examples {

// The BPF program with its counters. Has to outlive what it attached.
class CallCounter {
 public:
  // With a counter for each of `slot_cnt` slots.
  static absl::StatusOr<CallCounter> Load(ksweep::Kind kind, size_t slot_cnt);

  // Nothing is counted before everything is attached.
  absl::StatusOr<ksweep::Attachment> Attach(
      const ksweep::Resolution& resolution, ksweep::AttachOptions options);

  // Of the first `slot_cnt` slots.
  absl::StatusOr<std::vector<uint64_t>> ReadCalls(size_t slot_cnt) const;

  absl::StatusOr<Missed> ReadMissed(const ksweep::Attachment& attachment) const;

 private:
  struct Destroy {
    void operator()(funccount_bpf* bpf) const;
  };

  CallCounter();

  bpf_program* prog() const;

  std::unique_ptr<funccount_bpf, Destroy> bpf_;
};

// The one kind of --kind; kprobe.multi by itself.
absl::StatusOr<ksweep::Kind> ReadCounterKind();

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_CALL_COUNTER_H_
