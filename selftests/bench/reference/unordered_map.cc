#include <unordered_map>

#include "selftests/bench/reference/lines.h"
#include "selftests/bench/reference/reference.h"

namespace ksweep::bench {

std::vector<Found> FindByUnorderedMap(Names names, const std::string& path) {
  std::unordered_map<std::string_view, uint32_t> indices;
  indices.reserve(names.size());
  for (uint32_t i = 0; i < names.size(); ++i) indices.emplace(names[i], i);

  std::vector<Found> found;
  ForEachLine(path, [&](const Line& line) {
    const auto it = indices.find(line.name);
    if (it != indices.end()) {
      found.push_back({it->second, IsFunction(line), AddrOf(line)});
    }
  });
  return found;
}

}  // namespace ksweep::bench
