// Other ways to find names in kallsyms text, written plainly, to compare the
// sweep with. Each stands for what people do; none is a straw man.

#ifndef KSWEEP_SELFTESTS_BENCH_REFERENCE_REFERENCE_H_
#define KSWEEP_SELFTESTS_BENCH_REFERENCE_REFERENCE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace ksweep::bench {

// A symbol found. `wanted` is the index of its name, or of its glob, among
// those asked for.
struct Found {
  uint32_t wanted = 0;
  bool function = false;
  uint64_t addr = 0;
};

using Names = absl::Span<const std::string_view>;
// Finds every symbol, of any type, that has one of `names`, which are in no
// order and all different.
using FindFn = std::vector<Found> (*)(Names names, const std::string& path);

// Names sorted bytewise, one pass, a binary search with string comparison for
// each line: the sweep in its plain form.
std::vector<Found> FindByBinarySearch(Names names, const std::string& path);

// One pass, each line looked up in a hash table of the names.
std::vector<Found> FindByFlatHashMap(Names names, const std::string& path);
std::vector<Found> FindByUnorderedMap(Names names, const std::string& path);

// One pass, each line looked up in a balanced tree of the names.
std::vector<Found> FindByMap(Names names, const std::string& path);

// The whole table loaded and sorted by name, each name looked up in it: what
// tracing libraries do that keep a symbol table.
std::vector<Found> FindInLoadedTable(Names names, const std::string& path);

// The file opened and read again for each name: how one tracing library did it
// in 2021.
std::vector<Found> FindByRescan(Names names, const std::string& path);

// Every glob tried on every function, by fnmatch(3).
std::vector<Found> FindByEveryGlob(Names globs, const std::string& path);

// What no way can do without: reading, and reading and telling lines apart.
// Find nothing.
std::vector<Found> ReadOnly(Names names, const std::string& path);
std::vector<Found> ReadAndSplit(Names names, const std::string& path);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_REFERENCE_REFERENCE_H_
