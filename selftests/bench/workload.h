// What is searched, and where.

#ifndef KSWEEP_SELFTESTS_BENCH_WORKLOAD_H_
#define KSWEEP_SELFTESTS_BENCH_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "ksweep/request.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep::bench {

inline constexpr uint32_t kMostNames = 64000;

// A kallsyms text to pass over.
struct Source {
  std::string label;
  std::string path;
  bool live = false;  // made by the kernel while it is read
  uint64_t lines = 0;
  std::unique_ptr<testing::FakeKernel> kernel;  // holds an unpacked dump
};

// The running kernel, a file, a dump of selftests/data, or a text.
Source LiveSource();
Source FileSource(const std::string& path);
Source DumpSource(const std::string& name);
Source TextSource(std::string label, std::string_view text);
// Names of the dumps there are.
std::vector<std::string> DumpNames();

// kMostNames names in random order, always the same for the same text:
// functions of the text, so many that half of its lines have one of these names
// (but at most 60,000), and names that are not there but look as if. The first
// one is there.
std::vector<std::string> DrawNames(const Source& source);

// A name like `name`, in length and in its first half, which may exist.
std::string AbsentLike(const std::string& name, std::mt19937_64* random);

// `cnt` globs with a few matches each, made from functions of the text: heads,
// tails and middles of names.
std::vector<std::string> DrawGlobs(const Source& source, uint32_t cnt);

// Text with the symbols of the core kernel of `source`, and `times` - 1 times
// as many whose names have something appended: more symbols, no more hits.
std::string MoreSymbols(const Source& source, int times);

std::vector<Request> ExactRequests(const std::vector<std::string>& names);
std::vector<Request> GlobRequests(const std::vector<std::string>& globs);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_WORKLOAD_H_
