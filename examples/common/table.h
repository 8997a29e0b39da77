// Text for people: aligned columns, readable numbers.

#ifndef KSWEEP_EXAMPLES_COMMON_TABLE_H_
#define KSWEEP_EXAMPLES_COMMON_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

// Rows of cells, in columns as wide as needed.
class Table {
 public:
  // One letter a column: l for left-aligned, r for right-aligned.
  explicit Table(std::string_view alignment) : alignment_(alignment) {}

  // As many cells as columns. A head is a row as any other.
  void AddRow(std::vector<std::string> cells) {
    rows_.push_back(std::move(cells));
  }

  // All lines, each with `indent` in front.
  void AppendTo(std::string* out, std::string_view indent = "") const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

// 1,234,567
std::string WithCommas(uint64_t number);

// At most `width` '@', as many as fit `part` of `most`; padded with spaces.
// Some is at least one.
std::string Bar(uint64_t part, uint64_t most, size_t width);

// "12.3 ms"
std::string Milliseconds(int64_t ns);

// "1 target", "2 targets"
std::string Count(uint64_t number, std::string_view noun);

// ffffffff81234560, or "-" if it is not known.
std::string AddrText(uint64_t addr);

// The name of a module, or "-" for the core kernel.
std::string ModuleText(std::string_view module);

// Symbol names are bytes: what a terminal would not print becomes \xNN.
std::string Printable(std::string_view text);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_TABLE_H_
