// One line on the terminal that says what takes so long.

#ifndef KSWEEP_EXAMPLES_COMMON_PROGRESS_H_
#define KSWEEP_EXAMPLES_COMMON_PROGRESS_H_

#include <string_view>

namespace examples {

// Whether the result goes to a terminal.
bool StdoutIsTerminal();

// Writes to stderr, and only if that is a terminal (and $TERM is not "dumb").
// The line is wiped when it is no longer true.
class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { Clear(); }

  // Replaces the line.
  void Show(std::string_view text);

  void Clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_PROGRESS_H_
