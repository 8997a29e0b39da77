#include "lib/source/kallsyms.h"

#include <array>

namespace ksweep {
namespace {

constexpr uint8_t kNoDigit = 0xff;

constexpr std::array<uint8_t, 256> MakeDigits() {
  std::array<uint8_t, 256> digits = {};
  for (uint8_t& digit : digits) digit = kNoDigit;
  for (int i = 0; i < 10; ++i) digits['0' + i] = static_cast<uint8_t>(i);
  for (int i = 0; i < 6; ++i) {
    digits['a' + i] = static_cast<uint8_t>(10 + i);
    digits['A' + i] = static_cast<uint8_t>(10 + i);
  }
  return digits;
}

constexpr std::array<uint8_t, 256> kDigits = MakeDigits();

}  // namespace

bool ParseHex(std::string_view digits, uint64_t* value) {
  if (digits.empty() || digits.size() > kKsymAddrLen) return false;
  uint64_t parsed = 0;
  uint8_t bad = 0;
  for (char c : digits) {
    const uint8_t digit = kDigits[static_cast<unsigned char>(c)];
    bad |= digit;
    parsed = parsed << 4 | digit;
  }
  *value = parsed;
  return bad < 16;
}

bool IsAnyHex16(const char* p) {
  uint64_t value;
  return ParseHex({p, kKsymAddrLen}, &value);
}

bool ParseKsymLine(std::string_view line, Symbol* symbol) {
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos || line.size() < blank + 4) return false;
  if (line[blank + 2] != ' ') return false;
  if (!ParseHex(line.substr(0, blank), &symbol->addr)) return false;
  symbol->type = line[blank + 1];
  symbol->name = line.substr(blank + 3);
  symbol->module = {};
  const size_t tab = symbol->name.find('\t');
  if (tab == std::string_view::npos) return true;

  const std::string_view tag = symbol->name.substr(tab + 1);
  const size_t close = tag.find(']');
  if (tag.empty() || tag[0] != '[' || close == std::string_view::npos) {
    return false;
  }
  symbol->module = tag.substr(1, close - 1);
  symbol->name = symbol->name.substr(0, tab);
  return !symbol->name.empty() && !symbol->module.empty();
}

}  // namespace ksweep
