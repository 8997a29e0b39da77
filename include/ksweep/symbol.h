// A kernel symbol.

#ifndef KSWEEP_SYMBOL_H_
#define KSWEEP_SYMBOL_H_

#include <cstdint>
#include <string_view>

namespace ksweep {

// One line of kallsyms. The views live as long as the call that hands it out.
struct Symbol {
  uint64_t addr = 0;  // 0 when the kernel hides addresses
  char type = '?';    // as in nm(1); functions are T t W w
  std::string_view name;
  std::string_view module;  // empty: the core kernel
};

}  // namespace ksweep

#endif  // KSWEEP_SYMBOL_H_
