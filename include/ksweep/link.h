// An attachment in the kernel, as its file descriptor.

#ifndef KSWEEP_LINK_H_
#define KSWEEP_LINK_H_

#include <utility>

#include "absl/status/status.h"

namespace ksweep {

// Owns a BPF link. Destroying it detaches: the kernel ends a link with its last
// descriptor. Movable; not thread-safe.
class Link {
 public:
  Link() = default;
  // Takes `fd` over.
  explicit Link(int fd) : fd_(fd) {}
  Link(Link&& other) noexcept : fd_(other.Release()) {}
  Link& operator=(Link&& other) noexcept;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  // -1 if there is none (any more).
  int fd() const { return fd_; }

  // Detaches now. For tens of thousands of functions the kernel needs from
  // tens of milliseconds to some seconds. Does nothing the second time.
  absl::Status Detach();

  // Gives the descriptor away; the link lives on with it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace ksweep

#endif  // KSWEEP_LINK_H_
