#include "lib/source/blacklist.h"

#include <algorithm>
#include <utility>

#include "lib/source/kallsyms.h"
#include "lib/source/line_reader.h"

namespace ksweep {
namespace {

bool ParseAddr(std::string_view text, uint64_t* addr) {
  if (text.substr(0, 2) == "0x") text.remove_prefix(2);
  return ParseHex(text, addr);
}

}  // namespace

bool ParseBlacklistLine(std::string_view line, AddrRange* range) {
  const std::string_view both = line.substr(0, line.find_first_of(" \t"));
  const size_t dash = both.find('-');
  if (dash == std::string_view::npos) return false;
  return ParseAddr(both.substr(0, dash), &range->begin) &&
         ParseAddr(both.substr(dash + 1), &range->end);
}

Blacklist::Blacklist(std::vector<AddrRange> ranges) {
  std::sort(
      ranges.begin(), ranges.end(),
      [](const AddrRange& a, const AddrRange& b) { return a.begin < b.begin; });
  for (const AddrRange& range : ranges) {
    // Hidden addresses read as 0-0.
    if (range.begin >= range.end) continue;
    if (!ranges_.empty() && range.begin <= ranges_.back().end) {
      ranges_.back().end = std::max(ranges_.back().end, range.end);
    } else {
      ranges_.push_back(range);
    }
  }
}

absl::StatusOr<Blacklist> Blacklist::Read(ListFile* file) {
  std::vector<AddrRange> ranges;
  const bool stop = false;
  absl::Status status = ReadLines(
      file,
      [&ranges](std::string_view line) {
        AddrRange range;
        if (ParseBlacklistLine(line, &range)) ranges.push_back(range);
      },
      &stop);
  if (!status.ok()) return status;
  return Blacklist(std::move(ranges));
}

bool Blacklist::Contains(uint64_t addr) const {
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), addr,
                                [](uint64_t value, const AddrRange& range) {
                                  return value < range.begin;
                                });
  return after != ranges_.begin() && addr < std::prev(after)->end;
}

}  // namespace ksweep
