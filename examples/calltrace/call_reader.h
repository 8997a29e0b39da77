// Reads what the BPF program tells.

#ifndef KSWEEP_EXAMPLES_CALLTRACE_CALL_READER_H_
#define KSWEEP_EXAMPLES_CALLTRACE_CALL_READER_H_

#include <bpf/libbpf.h>
#include <stddef.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "calltrace/call_tree.h"

namespace examples {

class CallReader {
 public:
  // `fd` is the ring buffer's. `sink` is called while a method runs.
  static absl::StatusOr<std::unique_ptr<CallReader>> Create(
      int fd, CallTrees::Sink sink);

  explicit CallReader(CallTrees::Sink sink) : trees_(std::move(sink)) {}

  // Waits some time, or until there is much to read, and reads it.
  void Poll();

  // Reads all, once nothing is added any more.
  void Drain();

  CallTrees& trees() { return trees_; }

 private:
  struct Free {
    void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
  };

  static int OnRecord(void* context, void* data, size_t size);

  CallTrees trees_;
  uint32_t records_ = 0;
  std::unique_ptr<ring_buffer, Free> ring_;
};

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_CALLTRACE_CALL_READER_H_
