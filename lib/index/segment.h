// Stretches of address space. Records hold 32-bit compact addresses, in which
// segments lie one behind the other, whatever is between them in memory.

#ifndef KSWEEP_LIB_INDEX_SEGMENT_H_
#define KSWEEP_LIB_INDEX_SEGMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/index/row.h"

namespace ksweep {

struct Segment {
  uint64_t base = 0;     // address of its first symbol
  uint32_t compact = 0;  // compact address of that
  uint32_t span = 0;     // from the base to one past its last symbol's start
  uint32_t extent = 0;   // from the base to where nothing is held any more
  uint32_t owner = 0;
  uint32_t first_record = 0;
  // The last symbol ends at `extent`; else no one knows where it does.
  bool known_end = false;
  // Moves with `_stext`; else it is at an absolute address.
  bool slides = false;

  // Whether it holds `addr`.
  bool Holds(uint64_t addr) const { return addr - base < extent; }
};

struct SegmentOptions {
  absl::Span<const uint64_t> borders;  // ascending
  uint64_t tail_bytes = 4096;
  // Where only a mark is, `_end`, which has no bytes of its own.
  std::optional<uint64_t> end_mark;
  // With it, what is within 2 GiB of `_stext` and not absolute slides.
  bool has_stext = false;
  uint64_t stext = 0;
};

// Cuts rows into segments: where the owner changes, at borders, and at gaps
// that no symbol fills. The memory of several modules alternates, so that each
// has several segments; the last symbol of one ends where the next begins.
// Puts the rows into the order of addresses, those of one address and owner in
// the order they had, and notes their segments.
//
// FailedPrecondition if compact addresses do not suffice for them.
absl::StatusOr<std::vector<Segment>> CutSegments(const SegmentOptions& options,
                                                 std::vector<Row>* rows);

std::string PackSegments(absl::Span<const Segment> segments);
// DataLoss for what PackSegments() did not make.
absl::StatusOr<std::vector<Segment>> UnpackSegments(std::string_view packed);

// The segments that hold an address, found among any number of them, also if
// they overlap.
class SegmentFinder {
 public:
  SegmentFinder() = default;
  explicit SegmentFinder(absl::Span<const Segment> segments);

  // Calls `visit` with the number of each segment that holds `addr`.
  template <typename Visit>
  void Find(absl::Span<const Segment> segments, uint64_t addr,
            Visit visit) const {
    size_t i = CountUpTo(segments, addr);
    while (i > 0 && max_last_[i - 1] >= addr) {
      --i;
      if (segments[by_base_[i]].Holds(addr)) visit(by_base_[i]);
    }
  }

  // All segments by their base.
  absl::Span<const uint32_t> by_base() const { return by_base_; }

 private:
  size_t CountUpTo(absl::Span<const Segment> segments, uint64_t addr) const;

  std::vector<uint32_t> by_base_;
  // The last address held by any of the first i + 1 of by_base_.
  std::vector<uint64_t> max_last_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_SEGMENT_H_
