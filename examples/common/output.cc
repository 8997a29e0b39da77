#include "common/output.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <string>

namespace examples {
namespace {

std::string_view program_name = "ksweep";

}  // namespace

void SetProgramName(std::string_view name) { program_name = name; }

std::string_view ProgramName() { return program_name; }

bool WriteOut(std::string_view text) {
  // Without this, a reader that goes away ends the program without a word.
  signal(SIGPIPE, SIG_IGN);
  if (fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      fflush(stdout) == 0) {
    return true;
  }
  PrintMessage(std::string("cannot write the output: ") + strerror(errno));
  return false;
}

void WriteErr(std::string_view text) {
  fwrite(text.data(), 1, text.size(), stderr);
}

void PrintMessage(std::string_view message) {
  std::string line(program_name);
  line.append(": ").append(message).append("\n");
  WriteErr(line);
}

void PrintError(const absl::Status& status) {
  PrintMessage({status.message().data(), status.message().size()});
}

int WrongUsage(const absl::Status& status) {
  PrintError(status);
  return kExitUsage;
}

}  // namespace examples
