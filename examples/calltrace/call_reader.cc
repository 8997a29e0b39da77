#include "calltrace/call_reader.h"

#include <errno.h>
#include <string.h>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "calltrace/call.h"

namespace examples {
namespace {

// libbpf reads as long as there is more, which with much to trace may be
// always: an error makes it pause.
constexpr int kPause = -EINTR;
constexpr uint32_t kPauseAfter = 10'000;

}  // namespace

absl::StatusOr<std::unique_ptr<CallReader>> CallReader::Create(
    int fd, CallTrees::Sink sink) {
  auto reader = std::make_unique<CallReader>(std::move(sink));
  reader->ring_.reset(ring_buffer__new(fd, OnRecord, reader.get(), nullptr));
  if (reader->ring_ != nullptr) return reader;
  return absl::InternalError(
      absl::StrFormat("cannot map the ring buffer: %s", strerror(errno)));
}

void CallReader::Poll() {
  constexpr int kMilliseconds = 100;
  if (ring_buffer__poll(ring_.get(), kMilliseconds) == 0) {
    ring_buffer__consume(ring_.get());  // what waits without a wakeup
  }
}

void CallReader::Drain() {
  while (ring_buffer__consume(ring_.get()) == kPause) {
  }
}

int CallReader::OnRecord(void* context, void* data, size_t size) {
  auto* reader = static_cast<CallReader*>(context);
  CallTrees& trees = reader->trees_;
  if (size < sizeof(calltrace_root)) {
    trees.Add(*static_cast<const calltrace_call*>(data));
  } else {
    const auto& root = *static_cast<const calltrace_root*>(data);
    trees.AddRoot(root.call,
                  {root.comm, strnlen(root.comm, sizeof(root.comm))});
  }
  return ++reader->records_ % kPauseAfter == 0 ? kPause : 0;
}

}  // namespace examples
