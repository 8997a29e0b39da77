#include <fnmatch.h>

#include "lib/resolve/symbol_name.h"
#include "selftests/bench/reference/lines.h"
#include "selftests/bench/reference/reference.h"

namespace ksweep::bench {

std::vector<Found> FindByEveryGlob(Names globs, const std::string& path) {
  const std::vector<std::string> patterns(globs.begin(), globs.end());
  std::vector<Found> found;
  std::string name;
  ForEachLine(path, [&](const Line& line) {
    // Pads, stubs and BPF programs are no functions, whatever their type says.
    if (!IsFunction(line) || IsNeverTarget(line.name) ||
        IsPseudoOwner(line.module)) {
      return;
    }
    name = line.name;
    for (uint32_t i = 0; i < patterns.size(); ++i) {
      if (fnmatch(patterns[i].c_str(), name.c_str(), 0) == 0) {
        found.push_back({i, true, AddrOf(line)});
      }
    }
  });
  return found;
}

}  // namespace ksweep::bench
