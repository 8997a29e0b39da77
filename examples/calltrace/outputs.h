// Where calltrace's trees go: text to stdout, or files.

#ifndef KSWEEP_EXAMPLES_CALLTRACE_OUTPUTS_H_
#define KSWEEP_EXAMPLES_CALLTRACE_OUTPUTS_H_

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calltrace/call_tree.h"
#include "calltrace/chrome_trace.h"
#include "calltrace/function_names.h"
#include "calltrace/profile.h"

namespace examples {

// A file that is written from front to end.
class OutputFile {
 public:
  // Nothing is written if `path` is empty.
  static absl::StatusOr<OutputFile> Create(const std::string& path);

  bool is_open() const { return file_ != nullptr; }
  // An error is kept for Close().
  void Write(std::string_view text);
  absl::Status Close();

 private:
  struct Closer {
    void operator()(FILE* file) const { fclose(file); }
  };

  std::string path_;
  std::unique_ptr<FILE, Closer> file_;
};

// Names of files to write; empty: not.
struct OutputPaths {
  std::string perfetto;  // see ChromeTrace
  std::string folded;    // see FoldedText()
  std::string svg;       // see FlameGraphSvg()
};

class Outputs {
 public:
  // Creates the files.
  static absl::StatusOr<Outputs> Create(const OutputPaths& paths);

  // Without any file the trees are text.
  bool is_text() const {
    return !perfetto_.is_open() && !folded_.is_open() && !svg_.is_open();
  }

  void Add(const CallTree& tree, const FunctionNames& names);

  // The text since the last time.
  std::string TakeText() { return std::exchange(text_, {}); }

  // Writes what is only known at the end, and closes the files. `lost` calls
  // are missing.
  absl::Status Finish(std::string_view title, uint64_t lost);

 private:
  OutputFile perfetto_, folded_, svg_;
  ChromeTrace chrome_trace_;
  Profile profile_;
  std::string text_;
};

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_CALLTRACE_OUTPUTS_H_
