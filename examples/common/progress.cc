#include "common/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <string_view>

namespace examples {
namespace {

bool IsTerminal(int fd) {
  const char* term = getenv("TERM");
  return isatty(fd) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

bool StdoutIsTerminal() { return IsTerminal(STDOUT_FILENO); }

Progress::Progress() : terminal_(IsTerminal(STDERR_FILENO)) {}

void Progress::Show(std::string_view text) {
  if (!terminal_) return;
  Clear();
  fwrite(text.data(), 1, text.size(), stderr);
  fflush(stderr);
  shown_ = true;
}

void Progress::Clear() {
  if (!shown_) return;
  fputs("\r\033[K", stderr);
  shown_ = false;
}

}  // namespace examples
