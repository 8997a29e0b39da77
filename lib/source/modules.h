// proc/modules.

#ifndef KSWEEP_LIB_SOURCE_MODULES_H_
#define KSWEEP_LIB_SOURCE_MODULES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ksweep {

struct LoadedModule {
  std::string name;
  uint64_t addr = 0;  // 0 where the kernel hides it
};

// The modules of `text` that are live: neither loading nor unloading. Lines of
// another shape are skipped.
std::vector<LoadedModule> ParseModules(std::string_view text);

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_MODULES_H_
