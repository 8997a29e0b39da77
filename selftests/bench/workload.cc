#include "selftests/bench/workload.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "lib/base/glob.h"
#include "lib/resolve/symbol_name.h"
#include "selftests/bench/reference/lines.h"

namespace ksweep::bench {
namespace {

constexpr uint64_t kSeed = 2;
constexpr size_t kMostPresent = 60000;

uint64_t CountLines(const std::string& path) {
  uint64_t lines = 0;
  ForEachLine(path, [&lines](const Line&) { ++lines; });
  return lines;
}

// The names of a text, with what is needed to draw from them.
struct TextNames {
  std::vector<std::string> functions;  // different, in order, to be asked for
  absl::flat_hash_map<std::string, uint32_t> lines;  // of every name
};

TextNames ReadNames(const std::string& path) {
  TextNames text;
  absl::flat_hash_set<std::string> unfit;  // the sweep takes them otherwise
  ForEachLine(path, [&](const Line& line) {
    std::string name(line.name);
    if (IsNeverTarget(name) || IsPseudoOwner(line.module)) {
      unfit.insert(name);
    }
    ++text.lines[name];
    if (IsFunction(line)) text.functions.push_back(std::move(name));
  });
  absl::flat_hash_set<std::string> done = std::move(unfit);
  std::erase_if(text.functions, [&done](const std::string& name) {
    return !done.insert(name).second;
  });
  return text;
}

// A source whose file can be read as often as one likes.
Source CheckedSource(Source source) {
  source.lines = CountLines(source.path);
  if (source.lines == 0) {
    std::fprintf(stderr, "%s: no symbols\n", source.path.c_str());
    std::exit(2);
  }
  return source;
}

}  // namespace

Source LiveSource() {
  Source source;
  source.label = "live";
  source.path = "/proc/kallsyms";
  source.live = true;
  return CheckedSource(std::move(source));
}

Source FileSource(const std::string& path) {
  Source source;
  source.label = path;
  source.path = path;
  source.live = path.compare(0, 6, "/proc/") == 0;
  return CheckedSource(std::move(source));
}

Source TextSource(std::string label, std::string_view text) {
  Source source;
  source.label = std::move(label);
  source.kernel = std::make_unique<testing::FakeKernel>();
  source.kernel->Write(KernelFile::kKallsyms, text);
  source.path = source.kernel->Path(KernelFile::kKallsyms);
  return CheckedSource(std::move(source));
}

Source DumpSource(const std::string& name) {
  return TextSource(name, testing::Gunzip(testing::DataFolder() + "/" + name +
                                          "/proc/kallsyms.gz"));
}

std::vector<std::string> DumpNames() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::DataFolder())) {
    const std::string name = entry.path().filename();
    if (name.compare(0, 6, "linux-") == 0) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string AbsentLike(const std::string& name, std::mt19937_64* random) {
  std::string absent = name;
  const size_t at = name.size() / 2 + (*random)() % (name.size() + 1) / 2;
  absent[std::min(at, name.size() - 1)] =
      static_cast<char>('a' + (*random)() % 26);
  return absent;
}

std::vector<std::string> DrawNames(const Source& source) {
  TextNames text = ReadNames(source.path);
  std::mt19937_64 random(kSeed);
  std::shuffle(text.functions.begin(), text.functions.end(), random);

  std::vector<std::string> names;
  uint64_t hit_lines = 0;
  for (std::string& name : text.functions) {
    if (names.size() == kMostPresent || hit_lines * 2 >= source.lines) break;
    hit_lines += text.lines[name];
    names.push_back(std::move(name));
  }
  const size_t present = names.size();
  absl::flat_hash_set<std::string> made;
  while (names.size() < kMostNames) {
    std::string absent = AbsentLike(names[random() % present], &random);
    if (!text.lines.contains(absent) && made.insert(absent).second) {
      names.push_back(std::move(absent));
    }
  }
  std::shuffle(names.begin() + 1, names.end(), random);
  return names;
}

std::vector<std::string> DrawGlobs(const Source& source, uint32_t cnt) {
  const TextNames text = ReadNames(source.path);
  std::mt19937_64 random(kSeed);
  std::vector<std::string> globs;
  absl::flat_hash_set<std::string> made;
  while (globs.size() < cnt) {
    const std::string& name = text.functions[random() % text.functions.size()];
    if (name.size() < 9 || HasWildcard(name)) continue;
    // Two thirds of a name are shared with few others.
    const size_t kept = name.size() * 2 / 3;
    std::string glob;
    switch (random() % 4) {
      case 0:
      case 1:
        glob = name.substr(0, kept) + "*";
        break;
      case 2:
        glob = "*" + name.substr(name.size() - kept);
        break;
      default:
        glob = name.substr(0, 4) + "*" + name.substr(name.size() - 4);
        break;
    }
    if (made.insert(glob).second) globs.push_back(std::move(glob));
  }
  return globs;
}

std::string MoreSymbols(const Source& source, int times) {
  constexpr uint64_t kStart = 0xffffffff81000000;
  constexpr uint64_t kStep = 16;
  std::string text;
  uint64_t addr = kStart;
  for (int copy = 0; copy < times; ++copy) {
    const std::string suffix =
        copy == 0 ? "" : absl::StrFormat("__more%d", copy);
    ForEachLine(source.path, [&](const Line& line) {
      if (!line.module.empty()) return;
      absl::StrAppendFormat(&text, "%016x %c ", addr, line.type);
      text += line.name;
      text += suffix;
      text += '\n';
      addr += kStep;
    });
  }
  return text;
}

std::vector<Request> ExactRequests(const std::vector<std::string>& names) {
  std::vector<Request> requests;
  requests.reserve(names.size());
  for (const std::string& name : names) {
    requests.push_back(Request::Exact(name));
  }
  return requests;
}

std::vector<Request> GlobRequests(const std::vector<std::string>& globs) {
  std::vector<Request> requests;
  for (const std::string& glob : globs) {
    requests.push_back(*Request::Glob(glob));
  }
  return requests;
}

}  // namespace ksweep::bench
