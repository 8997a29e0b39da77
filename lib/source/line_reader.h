// Lines of a kernel list, many at a time.

#ifndef KSWEEP_LIB_SOURCE_LINE_READER_H_
#define KSWEEP_LIB_SOURCE_LINE_READER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/source/list_file.h"

namespace ksweep {

// Complete lines as they lie in the buffer, each with its newline. At least
// kReadableBehind bytes behind them can be read.
struct TextPiece {
  static constexpr size_t kReadableBehind = 64;

  std::string_view text;
  bool is_last = false;  // the file ends with it
};

// Calls `consume` with pieces until the file ends or `*stop` is set. It returns
// how many bytes of the piece it is done with, from the first: whole lines. The
// others come again with the next piece. Of the last piece all is taken as
// done.
//
// A line is held whole whatever its length. Memory does not grow with the file.
absl::Status ReadText(ListFile* file,
                      absl::FunctionRef<size_t(const TextPiece&)> consume,
                      const bool* stop);

// Calls `visit` with each line, without its newline, until `*stop` is set.
absl::Status ReadLines(ListFile* file,
                       absl::FunctionRef<void(std::string_view line)> visit,
                       const bool* stop);

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_LINE_READER_H_
