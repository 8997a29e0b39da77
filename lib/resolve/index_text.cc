#include "lib/resolve/index_text.h"

#include <map>
#include <string_view>

namespace ksweep {
namespace {

// Most names are shorter.
constexpr size_t kUsualLine = 56;

void AppendHex16(uint64_t value, std::string* out) {
  char digits[16];
  for (size_t i = sizeof(digits); i-- > 0; value >>= 4) {
    digits[i] = "0123456789abcdef"[value & 0x0f];
  }
  out->append(digits, sizeof(digits));
}

void AppendLine(const IndexSymbolView& symbol, std::string* out) {
  AppendHex16(symbol.addr, out);
  const char type[] = {' ', symbol.type, ' '};
  out->append(type, sizeof(type));
  out->append(symbol.name);
  if (!symbol.module.empty()) {
    out->append("\t[").append(symbol.module).append("]");
  }
  out->push_back('\n');
}

}  // namespace

absl::StatusOr<std::string> TextOfIndex(const SymbolIndex& index) {
  std::string text;
  text.reserve(index.size() * kUsualLine);
  std::map<std::string, std::string, std::less<>> modules;
  absl::Status status = index.ForEach([&](const IndexSymbolView& symbol) {
    std::string* out = &text;
    if (!symbol.module.empty()) {
      const auto known = modules.find(symbol.module);
      out = known != modules.end() ? &known->second
                                   : &modules[std::string(symbol.module)];
    }
    AppendLine(symbol, out);
    return true;
  });
  if (!status.ok()) return status;
  for (const auto& [module, lines] : modules) text += lines;
  return text;
}

}  // namespace ksweep
