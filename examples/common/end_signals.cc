#include "common/end_signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_format.h"

namespace examples {
namespace {

using std::chrono::nanoseconds;

sigset_t EndSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

// True if a signal came before `left` was over.
bool WaitForSignal(nanoseconds left) {
  const nanoseconds second = std::chrono::seconds(1);
  const timespec timeout = {.tv_sec = left / second,
                            .tv_nsec = (left % second).count()};
  const sigset_t set = EndSignals();
  return sigtimedwait(&set, nullptr, &timeout) > 0;
}

}  // namespace

void HoldEndSignals() {
  const sigset_t set = EndSignals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

bool EndSignalPending() {
  sigset_t set;
  sigpending(&set);
  return sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1;
}

bool WaitForEnd(double seconds, Progress& progress) {
  using Clock = std::chrono::steady_clock;
  nanoseconds left(static_cast<int64_t>(seconds * 1e9));
  const Clock::time_point end = Clock::now() + left;
  while (left.count() > 0) {
    progress.Show(absl::StrFormat("%.0f of %g s to go (Ctrl-C ends it)",
                                  static_cast<double>(left.count()) / 1e9,
                                  seconds));
    if (WaitForSignal(std::min<nanoseconds>(left, std::chrono::seconds(1)))) {
      return true;
    }
    left = end - Clock::now();
  }
  return false;
}

Woken WaitForEndOrInput(double seconds, int fd) {
  const nanoseconds left(static_cast<int64_t>(seconds * 1e9));
  const nanoseconds second = std::chrono::seconds(1);
  const timespec timeout = {.tv_sec = left / second,
                            .tv_nsec = (left % second).count()};
  const sigset_t signals = EndSignals();
  const int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
  pollfd fds[] = {{.fd = signal_fd, .events = POLLIN, .revents = 0},
                  {.fd = fd, .events = POLLIN, .revents = 0}};
  ppoll(fds, 2, &timeout, nullptr);
  if (signal_fd >= 0) close(signal_fd);
  if (EndSignalPending()) return Woken::kSignal;
  return fds[1].revents != 0 ? Woken::kInput : Woken::kTime;
}

}  // namespace examples
