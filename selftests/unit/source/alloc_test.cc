// What the readers allocate. A program of its own: operator new is replaced.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/glob_set.h"
#include "lib/base/name_set.h"
#include "lib/source/filter_list.h"
#include "lib/source/kallsyms.h"
#include "lib/source/line_reader.h"
#include "selftests/testing/alloc_counter.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using testing::AllocStats;
using testing::FakeKernel;
using testing::GetAllocStats;
using testing::ResetAllocStats;

// Of kallsyms; a third of the functions are a module's.
std::string KallsymsText(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) {
    text += "ffffffff81000000 t some_function_of_usual_length." +
            std::to_string(100000 + i) + (i % 3 == 0 ? "\t[m]\n" : "\n");
  }
  return text;
}

struct Cost {
  AllocStats stats;
  int found = 0;
};

template <typename Read>
Cost CostOf(KernelFile file, const std::string& text, Read read) {
  FakeKernel kernel;
  kernel.Write(file, text);
  const KernelFiles files = kernel.files();
  Cost cost;
  ResetAllocStats();
  {
    absl::StatusOr<ListFile> list = ListFile::Open(files, file);
    cost.found = read(&*list);
  }
  cost.stats = GetAllocStats();
  return cost;
}

// Functions that a glob and a set of names find: all the work there is for
// lines that do not match.
int Search(ListFile* file, const GlobSet& globs, const NameSet& names) {
  int found = 0;
  const bool stop = false;
  const absl::Status status = ReadLines(
      file,
      [&](std::string_view line) {
        Symbol symbol;
        if (!ParseKsymLine(line, &symbol)) return;
        found += names.Find(symbol.name).id != NameSet::kNone;
        found += globs.MatchesAny(symbol.name);
      },
      &stop);
  return status.ok() ? found : -1;
}

TEST(ReadLines, BugCase75_NoAllocationPerLine) {
  GlobSet globs;
  globs.Add("*[!0-9]");
  globs.Add("some_function_of_usual_length.x*");
  globs.Add("*_read");
  const std::vector<std::string_view> name = {
      "some_function_of_usual_length.100007"};
  const NameSet names(name);
  const auto search = [&](ListFile* file) {
    return Search(file, globs, names);
  };
  const Cost few = CostOf(KernelFile::kKallsyms, KallsymsText(10000), search);
  const Cost many = CostOf(KernelFile::kKallsyms, KallsymsText(200000), search);
  EXPECT_EQ(few.found, 1);
  EXPECT_EQ(many.found, 1);
  EXPECT_LE(many.stats.cnt, few.stats.cnt + 5);
  EXPECT_LT(many.stats.cnt, 60);
  EXPECT_LE(many.stats.peak_bytes, 2 * few.stats.peak_bytes);
  EXPECT_LT(many.stats.peak_bytes, 512 * 1024);
  EXPECT_EQ(many.stats.live_bytes, 0);
}

TEST(ReadFilterFuncs, BugCase75_NoAllocationPerLine) {
  const auto text = [](int lines) {
    std::string list;
    for (int i = 0; i < lines; ++i) {
      list += "ffffffff81000004 some_function_of_usual_length_" +
              std::to_string(100000 + i) + (i % 3 == 0 ? " [m]\n" : "\n");
    }
    return list;
  };
  const auto count = [](ListFile* file) {
    int found = 0;
    uint64_t malformed = 0;
    const absl::Status status = ReadFilterFuncs(
        file, /*with_addrs=*/true,
        [&found](const FilterFunc&) {
          ++found;
          return true;
        },
        &malformed);
    return status.ok() && malformed == 0 ? found : -1;
  };
  const Cost few =
      CostOf(KernelFile::kFilterFunctionsAddrs, text(10000), count);
  const Cost many =
      CostOf(KernelFile::kFilterFunctionsAddrs, text(200000), count);
  EXPECT_EQ(few.found, 10000);
  EXPECT_EQ(many.found, 200000);
  EXPECT_LE(many.stats.cnt, few.stats.cnt + 5);
  EXPECT_LT(many.stats.peak_bytes, 512 * 1024);
}

// Long lines need a buffer of their size, which does not grow with their
// number.
TEST(ReadLines, BugCase75_LongLinesShareTheBuffer) {
  const auto text = [](int lines) {
    std::string list;
    for (int i = 0; i < lines; ++i) list += std::string(200000, 'x') + "\n";
    return list;
  };
  const auto count = [](ListFile* file) {
    int found = 0;
    const bool stop = false;
    const absl::Status status = ReadLines(
        file, [&found](std::string_view) { ++found; }, &stop);
    return status.ok() ? found : -1;
  };
  const Cost few = CostOf(KernelFile::kKallsyms, text(4), count);
  const Cost many = CostOf(KernelFile::kKallsyms, text(60), count);
  EXPECT_EQ(few.found, 4);
  EXPECT_EQ(many.found, 60);
  EXPECT_EQ(many.stats.cnt, few.stats.cnt);
  EXPECT_EQ(many.stats.peak_bytes, few.stats.peak_bytes);
}

TEST(NameSet, BugCase75_SearchingAllocatesNothing) {
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back("f" + std::to_string(i));
  const std::vector<std::string_view> views(names.begin(), names.end());
  const NameSet set(views);
  std::vector<NameSet::Probe> probes;
  for (const std::string& name : names) {
    probes.push_back({name.data(), static_cast<uint32_t>(name.size()), 0});
  }
  int found = 0;
  ResetAllocStats();
  set.FindBatch(probes, [&found](uint32_t, const NameSet::Hit&) { ++found; });
  for (std::string_view view : views) {
    found += set.Find(view).id != NameSet::kNone;
  }
  EXPECT_EQ(GetAllocStats().cnt, 0);
  EXPECT_EQ(found, 2000);
}

}  // namespace
}  // namespace ksweep
