// What a sweep allocates. Counted, not timed.

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "lib/resolve/sweep.h"
#include "lib/resolve/sweep_plan.h"
#include "lib/source/list_file.h"
#include "selftests/testing/alloc_counter.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

std::string Text(int cnt) {
  std::string text;
  for (int i = 0; i < cnt; ++i) {
    text +=
        absl::StrFormat("%016x t some_function_%d\n",
                        0xffffffff81000000 + 16 * static_cast<uint64_t>(i), i);
  }
  return text;
}

struct Cost {
  testing::AllocStats allocs;
  size_t rows = 0;
};

Cost SweepCost(const testing::FakeKernel& kernel,
               const std::vector<Request>& requests) {
  const SweepPlan plan(requests);
  absl::StatusOr<ListFile> file =
      ListFile::Open(kernel.files(), KernelFile::kKallsyms);
  EXPECT_TRUE(file.ok());
  testing::ResetAllocStats();
  SweepResult result;
  EXPECT_TRUE(Sweep(plan, {}, &*file, &result).ok());
  return {testing::GetAllocStats(), result.rows.size()};
}

TEST(SweepCost, BugCase75_NoAllocationForALineThatDoesNotMatch) {
  const std::vector<Request> sets[] = {
      {Request::Exact("some_function_17"), Request::Exact("absent")},
      {*Request::Glob("some_function_1?"), *Request::Glob("other_*"),
       *Request::Glob("*_function_42")},
      {Request::Address(0xffffffff81000104), Request::Syscall("openat")},
  };
  testing::FakeKernel small, large;
  small.Write(KernelFile::kKallsyms, Text(20000));
  large.Write(KernelFile::kKallsyms, Text(200000));
  for (const std::vector<Request>& requests : sets) {
    const Cost few = SweepCost(small, requests);
    const Cost many = SweepCost(large, requests);
    EXPECT_GT(few.rows, 0u);
    EXPECT_EQ(few.rows, many.rows);
    // Ten times the symbols cost not one allocation more.
    EXPECT_EQ(many.allocs.cnt, few.allocs.cnt);
    EXPECT_EQ(many.allocs.peak_bytes, few.allocs.peak_bytes);
    EXPECT_LT(many.allocs.peak_bytes, 300 * 1024);
  }
}

TEST(SweepCost, MemoryIsForTheRequests) {
  std::vector<Request> requests;
  size_t name_bytes = 0;
  for (int i = 0; i < 64000; ++i) {
    std::string name = absl::StrFormat("name_that_is_nowhere_%d", i);
    name_bytes += name.size();
    requests.push_back(Request::Exact(std::move(name)));
  }
  testing::FakeKernel kernel;
  kernel.Write(KernelFile::kKallsyms, Text(200000));
  testing::ResetAllocStats();
  const SweepPlan plan(requests);
  const int64_t held = testing::GetAllocStats().live_bytes;
  // One copy of the names, and at most 2 MB beside it.
  EXPECT_LT(held, static_cast<int64_t>(name_bytes) + 2'000'000);
  absl::StatusOr<ListFile> file =
      ListFile::Open(kernel.files(), KernelFile::kKallsyms);
  ASSERT_TRUE(file.ok());
  SweepResult result;
  ASSERT_TRUE(Sweep(plan, {}, &*file, &result).ok());
  // Room for a row of each name is set aside, but not touched.
  const auto room =
      static_cast<int64_t>(result.rows.capacity() * sizeof(SymbolRow));
  EXPECT_LT(testing::GetAllocStats().live_bytes - held - room, 200'000);
}

}  // namespace
}  // namespace ksweep
