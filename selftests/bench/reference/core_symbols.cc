#include "selftests/bench/reference/core_symbols.h"

#include "selftests/bench/reference/lines.h"

namespace ksweep::bench {

std::vector<CoreSymbol> ReadCoreSymbols(const std::string& path) {
  std::vector<CoreSymbol> symbols;
  ForEachLine(path, [&symbols](const Line& line) {
    if (!line.module.empty()) return;
    symbols.push_back({AddrOf(line), line.type, std::string(line.name)});
  });
  return symbols;
}

}  // namespace ksweep::bench
