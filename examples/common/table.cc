#include "common/table.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace examples {

void Table::AppendTo(std::string* out, std::string_view indent) const {
  std::vector<size_t> widths(alignment_.size(), 0);
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  for (const std::vector<std::string>& row : rows_) {
    out->append(indent);
    for (size_t i = 0; i < widths.size(); ++i) {
      const size_t padding = widths[i] - row[i].size();
      if (i > 0) out->append("  ");
      if (alignment_[i] == 'r') out->append(padding, ' ');
      out->append(row[i]);
      if (alignment_[i] == 'l') out->append(padding, ' ');
    }
    out->erase(out->find_last_not_of(' ') + 1);
    out->push_back('\n');
  }
}

std::string WithCommas(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t end = text.size(); end > 3; end -= 3)
    text.insert(end - 3, 1, ',');
  return text;
}

std::string Bar(uint64_t part, uint64_t most, size_t width) {
  if (part == 0 || most == 0) return std::string(width, ' ');
  const double share = static_cast<double>(part) / static_cast<double>(most);
  const auto length = static_cast<size_t>(share * static_cast<double>(width));
  std::string bar(std::clamp<size_t>(length, 1, width), '@');
  bar.resize(width, ' ');
  return bar;
}

std::string Milliseconds(int64_t ns) {
  return absl::StrFormat("%.1f ms", static_cast<double>(ns) / 1e6);
}

std::string Count(uint64_t number, std::string_view noun) {
  return absl::StrFormat("%s %s%s", WithCommas(number), noun,
                         number == 1 ? "" : "s");
}

std::string AddrText(uint64_t addr) {
  return addr == 0 ? "-" : absl::StrFormat("%016x", addr);
}

std::string ModuleText(std::string_view module) {
  return module.empty() ? "-" : Printable(module);
}

std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  for (const char c : text) {
    if (c >= 0x20 && c < 0x7f) {
      printable.push_back(c);
    } else {
      absl::StrAppendFormat(&printable, "\\x%02x", static_cast<uint8_t>(c));
    }
  }
  return printable;
}

}  // namespace examples
