// The symbols of the core kernel, which are what the kernel's own table holds.

#ifndef KSWEEP_SELFTESTS_BENCH_REFERENCE_CORE_SYMBOLS_H_
#define KSWEEP_SELFTESTS_BENCH_REFERENCE_CORE_SYMBOLS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace ksweep::bench {

struct CoreSymbol {
  uint64_t addr = 0;
  char type = '?';
  std::string name;
};

// Those of a kallsyms text, in its order: without lines of modules and of BPF
// programs.
std::vector<CoreSymbol> ReadCoreSymbols(const std::string& path);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_REFERENCE_CORE_SYMBOLS_H_
