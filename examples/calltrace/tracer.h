// The BPF programs and their maps.

#ifndef KSWEEP_EXAMPLES_CALLTRACE_TRACER_H_
#define KSWEEP_EXAMPLES_CALLTRACE_TRACER_H_

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calltrace/call.h"
#include "common/both_ends.h"
#include "ksweep/attach.h"
// The skeletons.
#include "calltrace.ctx.skel.h"
#include "calltrace.skel.h"

namespace examples {

struct TracerOptions {
  uint32_t function_cnt = 0;
  uint32_t buffer_bytes = 0;  // a power of two of pages
  uint32_t max_depth = CALLTRACE_MAX_DEPTH;
  uint32_t only_pid = 0;  // 0: all processes
};

class Tracer {
 public:
  static absl::StatusOr<Tracer> Load(const std::vector<ksweep::Kind>& kinds,
                                     const TracerOptions& options);

  const std::vector<ksweep::KindProgram>& programs() const {
    return bpf_.programs;
  }
  bool* ready() { return &bpf_->bss->ready; }
  int calls_fd() const { return bpf_map__fd(bpf_->maps.calls); }

  // Nothing is recorded before an entry function is known.
  absl::Status SetEntry(uint32_t slot);

  // By reason, see calltrace_lost.
  absl::StatusOr<std::vector<uint64_t>> ReadLost() const;

  // Threads that are in an entry function.
  template <typename Visit>
  void ForEachThread(Visit visit) const {
    const int fd = bpf_map__fd(bpf_->maps.threads);
    uint64_t key = 0;
    const uint64_t* last = nullptr;
    calltrace_thread thread = {};
    while (bpf_map_get_next_key(fd, last, &key) == 0) {
      if (bpf_map_lookup_elem(fd, &key, &thread) == 0) visit(key, thread);
      last = &key;
    }
  }

 private:
  int LoadObject(const TracerOptions& options);

  BothEnds<calltrace_bpf> bpf_;
};

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_CALLTRACE_TRACER_H_
