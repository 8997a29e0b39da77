#include "ksweep/link.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/errno_status.h"

namespace ksweep {

Link& Link::operator=(Link&& other) noexcept {
  Link incoming(std::move(other));
  std::swap(fd_, incoming.fd_);  // `incoming` closes what was here
  return *this;
}

Link::~Link() {
  if (fd_ >= 0) close(fd_);
}

absl::Status Link::Detach() {
  // Given up before the close: Linux frees the descriptor even if close(2)
  // fails, so a second try would hit somebody else's.
  const int fd = Release();
  if (fd < 0 || close(fd) == 0) return absl::OkStatus();
  const int err = errno;
  return ErrnoStatus(err, absl::StrFormat("closing BPF link fd %d", fd));
}

}  // namespace ksweep
