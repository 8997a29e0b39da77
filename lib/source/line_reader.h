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

// Complete lines as they lie in the buffer. At least 64 bytes behind the last
// one can be read.
struct LineBatch {
  const char* base = nullptr;
  // Where each line starts; one more at the end. Line i ends before the newline
  // at starts[i + 1] - 1.
  absl::Span<const uint32_t> starts;
  // Lines with a '.', ascending.
  absl::Span<const uint32_t> dotted;
  uint64_t first_line = 1;  // the number of line 0 in the file
  bool has_tab = false;
  bool is_last = false;  // nothing follows; not set if the end is not known yet

  uint32_t cnt() const { return static_cast<uint32_t>(starts.size()) - 1; }
  const char* begin(uint32_t i) const { return base + starts[i]; }
  const char* end(uint32_t i) const { return base + starts[i + 1] - 1; }
  std::string_view line(uint32_t i) const {
    return {begin(i), static_cast<size_t>(end(i) - begin(i))};
  }
};

// Calls `consume` with batches until the file ends or `*stop` is set. It
// returns how many lines of the batch it is done with, from the first; the
// others come again with the next batch. Of the last batch all are taken as
// done.
//
// A line is held whole whatever its length. Memory does not grow with the file.
absl::Status ReadLines(ListFile* file,
                       absl::FunctionRef<uint32_t(const LineBatch&)> consume,
                       const bool* stop);

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_LINE_READER_H_
