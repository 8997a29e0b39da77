#include <algorithm>
#include <utility>

#include "selftests/bench/reference/lines.h"
#include "selftests/bench/reference/reference.h"

namespace ksweep::bench {

std::vector<Found> FindByBinarySearch(Names names, const std::string& path) {
  using Entry = std::pair<std::string_view, uint32_t>;
  std::vector<Entry> sorted;
  sorted.reserve(names.size());
  for (uint32_t i = 0; i < names.size(); ++i) sorted.push_back({names[i], i});
  std::sort(sorted.begin(), sorted.end());

  std::vector<Found> found;
  ForEachLine(path, [&](const Line& line) {
    const auto it =
        std::lower_bound(sorted.begin(), sorted.end(), line.name,
                         [](const Entry& entry, std::string_view name) {
                           return entry.first < name;
                         });
    if (it != sorted.end() && it->first == line.name) {
      found.push_back({it->second, IsFunction(line), AddrOf(line)});
    }
  });
  return found;
}

}  // namespace ksweep::bench
