#include "lib/index/segment.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "lib/index/le.h"

namespace ksweep {
namespace {

constexpr uint64_t kMaxGap = uint64_t{16} << 20;
constexpr uint64_t kImageReach = uint64_t{2} << 30;
// Leaves room for the extent of the last segment.
constexpr uint64_t kMaxCompact = UINT32_MAX - 2 * kMaxGap;

constexpr uint8_t kKnownEndFlag = 1;
constexpr uint8_t kSlidesFlag = 2;

class Cutter {
 public:
  Cutter(const SegmentOptions& options, std::vector<Row>* rows)
      : options_(options), rows_(*rows) {}

  absl::StatusOr<std::vector<Segment>> Run();

 private:
  // Rows [first, last] of one segment.
  struct Range {
    size_t first;
    size_t last;
  };

  std::vector<Range> Cut(uint64_t max_gap) const;
  bool BorderBetween(uint64_t a, uint64_t b) const;
  bool RegionEndsBetween(const Row& a, const Row& b, uint64_t max_gap) const;
  const Row* NextInRegion(const Row& row) const;
  void SetEnd(const Range& range, Segment* segment) const;
  bool Slides(const Range& range) const;
  Segment MakeSegment(const Range& range) const;

  const SegmentOptions& options_;
  std::vector<Row>& rows_;
};

// Whether a border is above `a` and not above `b`.
bool Cutter::BorderBetween(uint64_t a, uint64_t b) const {
  const auto next =
      std::upper_bound(options_.borders.begin(), options_.borders.end(), a);
  return next != options_.borders.end() && *next <= b;
}

bool Cutter::RegionEndsBetween(const Row& a, const Row& b,
                               uint64_t max_gap) const {
  return b.addr - a.addr > max_gap || BorderBetween(a.addr, b.addr);
}

std::vector<Cutter::Range> Cutter::Cut(uint64_t max_gap) const {
  std::vector<Range> ranges;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (i == 0 || rows_[i - 1].owner != rows_[i].owner ||
        RegionEndsBetween(rows_[i - 1], rows_[i], max_gap)) {
      ranges.push_back({i, i});
    }
    ranges.back().last = i;
  }
  return ranges;
}

// The first row above `row`'s address in the same region; nullptr if there is
// none.
const Row* Cutter::NextInRegion(const Row& row) const {
  const auto next = std::upper_bound(
      rows_.begin(), rows_.end(), row.addr,
      [](uint64_t addr, const Row& other) { return addr < other.addr; });
  if (next == rows_.end() || RegionEndsBetween(row, *next, kMaxGap)) {
    return nullptr;
  }
  return &*next;
}

// What follows decides: a border, the next symbol of the same region, which is
// of another owner or was cut off only because compact addresses would run out,
// or nothing.
void Cutter::SetEnd(const Range& range, Segment* segment) const {
  const uint64_t last = rows_[range.last].addr;
  uint64_t end = 0;
  const auto border =
      std::upper_bound(options_.borders.begin(), options_.borders.end(), last);
  const Row* const next = NextInRegion(rows_[range.last]);
  const bool is_mark = segment->span == 1 && options_.end_mark == last;
  if (next != nullptr) {
    end = next->addr;
  } else if (!is_mark && border != options_.borders.end() &&
             *border - last <= kMaxGap) {
    end = *border;
  }
  segment->known_end = end != 0;
  if (segment->known_end) {
    segment->extent = static_cast<uint32_t>(end - segment->base);
    return;
  }
  const uint64_t tail =
      is_mark ? 1 : std::clamp<uint64_t>(options_.tail_bytes, 1, kMaxGap);
  uint64_t extent = uint64_t{segment->span} - 1 + tail;
  // Not past the highest address.
  extent = std::min(extent, UINT64_MAX - segment->base);
  segment->extent =
      static_cast<uint32_t>(std::max<uint64_t>(extent, segment->span));
}

bool Cutter::Slides(const Range& range) const {
  if (!options_.has_stext) return false;
  const uint64_t base = rows_[range.first].addr;
  const uint64_t distance =
      base > options_.stext ? base - options_.stext : options_.stext - base;
  if (distance > kImageReach) return false;
  for (size_t i = range.first; i <= range.last; ++i) {
    if (rows_[i].type != 'A' && rows_[i].type != 'a') return true;
  }
  return false;
}

Segment Cutter::MakeSegment(const Range& range) const {
  Segment segment;
  segment.base = rows_[range.first].addr;
  segment.owner = rows_[range.first].owner;
  segment.span =
      static_cast<uint32_t>(rows_[range.last].addr - segment.base + 1);
  segment.slides = Slides(range);
  SetEnd(range, &segment);
  return segment;
}

uint64_t CompactBytes(absl::Span<const Row> rows, size_t first, size_t last) {
  return rows[last].addr - rows[first].addr + 1;
}

absl::StatusOr<std::vector<Segment>> Cutter::Run() {
  const auto by_addr_and_owner = [](const Row& a, const Row& b) {
    return std::tie(a.addr, a.owner) < std::tie(b.addr, b.owner);
  };
  if (!std::is_sorted(rows_.begin(), rows_.end(), by_addr_and_owner)) {
    std::stable_sort(rows_.begin(), rows_.end(), by_addr_and_owner);
  }
  std::vector<Range> ranges;
  uint64_t total = 0;
  for (uint64_t max_gap = kMaxGap;; max_gap /= 4) {
    ranges = Cut(max_gap);
    total = 0;
    for (const Range& r : ranges) total += CompactBytes(rows_, r.first, r.last);
    if (total <= kMaxCompact) break;
    if (max_gap == 0) {
      return absl::FailedPreconditionError(
          "too many symbols for an index: their addresses, gaps left out, "
          "span more than 4 GiB");
    }
  }
  std::vector<Segment> segments;
  uint32_t compact = 0;
  for (const Range& range : ranges) {
    segments.push_back(MakeSegment(range));
    segments.back().compact = compact;
    compact += segments.back().span;
    for (size_t i = range.first; i <= range.last; ++i) {
      rows_[i].segment = static_cast<uint32_t>(segments.size() - 1);
    }
  }
  return segments;
}

}  // namespace

absl::StatusOr<std::vector<Segment>> CutSegments(const SegmentOptions& options,
                                                 std::vector<Row>* rows) {
  return Cutter(options, rows).Run();
}

std::string PackSegments(absl::Span<const Segment> segments) {
  std::string packed;
  for (const Segment& segment : segments) {
    AppendLe(segment.base, &packed);
    AppendLe(segment.span, &packed);
    AppendLe(segment.extent, &packed);
    AppendLe(segment.owner, &packed);
    AppendLe(segment.first_record, &packed);
    packed.push_back(static_cast<char>((segment.known_end ? kKnownEndFlag : 0) |
                                       (segment.slides ? kSlidesFlag : 0)));
  }
  return packed;
}

absl::StatusOr<std::vector<Segment>> UnpackSegments(std::string_view packed) {
  const absl::Status damaged =
      absl::DataLossError("the index's segments contradict each other");
  std::vector<Segment> segments;
  uint64_t compact = 0;
  LeReader reader(packed);
  while (!reader.rest().empty()) {
    Segment segment;
    segment.base = reader.Take<uint64_t>();
    segment.span = reader.Take<uint32_t>();
    segment.extent = reader.Take<uint32_t>();
    segment.owner = reader.Take<uint32_t>();
    segment.first_record = reader.Take<uint32_t>();
    const uint8_t flags = reader.Take<uint8_t>();
    segment.known_end = flags & kKnownEndFlag;
    segment.slides = flags & kSlidesFlag;
    segment.compact = static_cast<uint32_t>(compact);
    compact += segment.span;
    const bool in_order = segments.empty() ||
                          segments.back().first_record <= segment.first_record;
    if (!reader.ok() || segment.span == 0 || segment.extent < segment.span ||
        compact > kMaxCompact || !in_order) {
      return damaged;
    }
    segments.push_back(segment);
  }
  if (!reader.ok()) return damaged;
  return segments;
}

SegmentFinder::SegmentFinder(absl::Span<const Segment> segments)
    : by_base_(segments.size()) {
  std::iota(by_base_.begin(), by_base_.end(), 0);
  std::stable_sort(by_base_.begin(), by_base_.end(),
                   [&](uint32_t a, uint32_t b) {
                     return segments[a].base < segments[b].base;
                   });
  uint64_t max_last = 0;
  for (uint32_t i : by_base_) {
    const uint64_t last = segments[i].base + segments[i].extent - 1;
    // One that runs over the highest address holds all up to it.
    max_last = std::max(max_last, last < segments[i].base ? UINT64_MAX : last);
    max_last_.push_back(max_last);
  }
}

size_t SegmentFinder::CountUpTo(absl::Span<const Segment> segments,
                                uint64_t addr) const {
  return static_cast<size_t>(
      std::upper_bound(
          by_base_.begin(), by_base_.end(), addr,
          [&](uint64_t a, uint32_t i) { return a < segments[i].base; }) -
      by_base_.begin());
}

}  // namespace ksweep
