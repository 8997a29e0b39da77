// Lines from a descriptor, as they come.

#ifndef KSWEEP_EXAMPLES_COMMON_INPUT_LINES_H_
#define KSWEEP_EXAMPLES_COMMON_INPUT_LINES_H_

#include <string>
#include <vector>

namespace examples {

class InputLines {
 public:
  explicit InputLines(int fd) : fd_(fd) {}

  // For poll(2); -1 at the end of the input or after an error.
  int fd() const { return fd_; }

  // Reads once, which waits unless there is something to read. Lines without
  // their end; the last of the input does not need one.
  std::vector<std::string> Read();

 private:
  int fd_;
  std::string begun_;  // a line without its end so far
};

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_INPUT_LINES_H_
