#include "lib/source/modules.h"

#include <charconv>
#include <optional>

namespace ksweep {
namespace {

// The next word of `line`, which is taken off.
std::string_view TakeWord(std::string_view* line) {
  while (line->starts_with(' ')) line->remove_prefix(1);
  const std::string_view word = line->substr(0, line->find(' '));
  line->remove_prefix(word.size());
  return word;
}

// "veth 45056 0 - Live 0xffffffffc0a3d000 (E)".
std::optional<LoadedModule> ParseLine(std::string_view line) {
  const std::string_view name = TakeWord(&line);
  for (int skipped = 0; skipped < 3; ++skipped) TakeWord(&line);
  if (name.empty() || TakeWord(&line) != "Live") return std::nullopt;
  LoadedModule module;
  module.name = std::string(name);
  std::string_view addr = TakeWord(&line);
  if (addr.starts_with("0x")) addr.remove_prefix(2);
  std::from_chars(addr.data(), addr.data() + addr.size(), module.addr, 16);
  return module;
}

}  // namespace

std::vector<LoadedModule> ParseModules(std::string_view text) {
  std::vector<LoadedModule> modules;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() < text.size() ? line.size() + 1
                                                 : line.size());
    std::optional<LoadedModule> module = ParseLine(line);
    if (module.has_value()) modules.push_back(*std::move(module));
  }
  return modules;
}

}  // namespace ksweep
