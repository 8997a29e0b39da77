// The first look at kallsyms text: where its lines are, and which of them could
// have a name that is searched.

#ifndef KSWEEP_LIB_RESOLVE_LINE_SCAN_H_
#define KSWEEP_LIB_RESOLVE_LINE_SCAN_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "lib/base/bit_set.h"
#include "lib/base/name_set.h"
#include "lib/source/kallsyms.h"

namespace ksweep {

// Looks at each symbol of the kernel once, so all that is done for every line
// is done here, and in one loop. Not thread-safe.
class LineScan {
 public:
  // A dot in a name.
  struct Dot {
    const char* at;
    uint32_t line;
  };

  explicit LineScan(const NameSet::Filter& filter) : filter_(filter) {}

  // Scans `text`, whole lines of which each has its newline. 64 bytes behind it
  // can be read. What is told below is of this text, until the next call.
  void Scan(std::string_view text);

  uint32_t cnt() const { return cnt_; }
  const char* begin(uint32_t i) const { return text_.data() + starts_[i]; }
  const char* end(uint32_t i) const { return begin(i + 1) - 1; }
  std::string_view line(uint32_t i) const {
    return {begin(i), static_cast<size_t>(end(i) - begin(i))};
  }

  // Not in the columns of a 64-bit kernel. Of such a line nothing else is known
  // but is_module().
  bool is_odd(uint32_t i) const { return odd_.Has(i); }
  absl::Span<const uint32_t> odd_lines() const { return odd_lines_; }

  // Lines with a tab.
  const BitSet& modules() const { return modules_; }
  bool is_module(uint32_t i) const { return modules_.Has(i); }

  // The parts of a line that is not odd.
  uint64_t addr(uint32_t i) const { return ParseHex16(begin(i)); }
  char type(uint32_t i) const { return begin(i)[kKsymTypeColumn]; }
  std::string_view name(uint32_t i) const {
    const char* const name = begin(i) + kKsymNameColumn;
    return {name, static_cast<size_t>(name_end(i) - name)};
  }
  // The tab, or the end of the line.
  const char* name_end(uint32_t i) const {
    return is_module(i) ? tab(i) : end(i);
  }
  const char* tab(uint32_t i) const { return text_.data() + tabs_[i]; }

  // Names that could be in the set, tagged with their lines, ascending.
  absl::Span<const NameSet::Probe> probes() const {
    return {probes_.data(), probe_cnt_};
  }
  // Dots in names that are not in odd lines, ascending.
  absl::Span<const Dot> dots() const { return dots_; }

  // False if an address of the core kernel is below that of a line before, in
  // this text or an earlier one. Odd lines and small addresses do not count.
  bool ordered() const { return ordered_; }
  // True if the core kernel has an address of not more than 8 digits here.
  bool has_small() const { return has_small_; }

 private:
  struct NameEnd {
    const char* tab = nullptr;  // null if there is none
    const char* newline = nullptr;
  };

  void Start(std::string_view text);
  void MakeRoom(size_t bytes);
  const char* ScanUnusual(const char* p);
  const char* ScanOdd(const char* p);
  NameEnd FindNameEnd(const char* window);
  void NoteOrder(const char* p);

  const NameSet::Filter filter_;

  std::string_view text_;
  uint32_t cnt_ = 0;
  std::vector<uint32_t> starts_;  // one more than lines
  std::vector<uint32_t> tabs_;    // of lines of modules
  std::vector<uint32_t> odd_lines_;
  BitSet odd_;
  BitSet modules_;
  std::vector<NameSet::Probe> probes_;
  size_t probe_cnt_ = 0;
  std::vector<Dot> dots_;

  // The address of the line before, as text: the first 8 digits as they lie,
  // and the others as an ordered value.
  uint64_t last_high_ = 0;
  uint64_t last_low_ = 0;
  bool ordered_ = true;
  bool has_small_ = false;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_LINE_SCAN_H_
