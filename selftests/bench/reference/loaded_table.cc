#include <algorithm>

#include "selftests/bench/reference/lines.h"
#include "selftests/bench/reference/reference.h"

namespace ksweep::bench {
namespace {

struct Row {
  uint64_t addr = 0;
  uint32_t name_begin = 0;
  uint32_t name_len = 0;
  bool function = false;
};

// The names in one string, not in one each: half the time and memory.
struct Table {
  std::string names;
  std::vector<Row> rows;

  std::string_view NameOf(const Row& row) const {
    return std::string_view(names).substr(row.name_begin, row.name_len);
  }
};

Table Load(const std::string& path) {
  Table table;
  ForEachLine(path, [&table](const Line& line) {
    table.rows.push_back(
        {AddrOf(line), static_cast<uint32_t>(table.names.size()),
         static_cast<uint32_t>(line.name.size()), IsFunction(line)});
    table.names += line.name;
  });
  std::sort(table.rows.begin(), table.rows.end(),
            [&table](const Row& a, const Row& b) {
              return table.NameOf(a) < table.NameOf(b);
            });
  return table;
}

}  // namespace

std::vector<Found> FindInLoadedTable(Names names, const std::string& path) {
  const Table table = Load(path);
  std::vector<Found> found;
  for (uint32_t i = 0; i < names.size(); ++i) {
    auto row = std::lower_bound(table.rows.begin(), table.rows.end(), names[i],
                                [&table](const Row& a, std::string_view name) {
                                  return table.NameOf(a) < name;
                                });
    for (; row != table.rows.end() && table.NameOf(*row) == names[i]; ++row) {
      found.push_back({i, row->function, row->addr});
    }
  }
  return found;
}

}  // namespace ksweep::bench
