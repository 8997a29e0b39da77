// Input: patterns, one a line, and in the last line a name.

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/glob.h"
#include "lib/base/glob_set.h"
#include "selftests/fuzz/fuzz_target.h"
#include "selftests/unit/base/glob_reference.h"

namespace ksweep {
namespace {

constexpr std::string_view kWords[] = {
    "a",    "b",     "ab",    "ba",    "aaaaaaaa", "*",   "**", "?",
    "[",    "]",     "[a-c]", "[!b]",  "[^a]",     "[]a", "-",  "!",
    "^",    "\n",    "\n",    "\xc3",  "\xa9",     "_",   ".",  "[b-a]",
    "vfs_", "_read", "[[]",   "[]-a]", "[a-]",
};

// The reference takes exponential time.
bool IsFewEnough(std::string_view pattern, std::string_view name) {
  return std::count(pattern.begin(), pattern.end(), '*') <= 4 &&
         pattern.size() <= 100 && name.size() <= 60;
}

bool CheckPattern(std::string_view pattern, std::string_view name) {
  const std::optional<ReferenceGlob> reference = ReferenceGlob::Parse(pattern);
  const absl::Status status = CheckGlob(pattern);
  FuzzCheck(status.ok() == reference.has_value(), "refused like the reference",
            pattern);
  if (!status.ok()) {
    FuzzCheck(absl::IsInvalidArgument(status), "InvalidArgument", pattern);
    return false;
  }
  const bool matches = GlobMatch(pattern, name);
  if (IsFewEnough(pattern, name)) {
    FuzzCheck(matches == reference->Matches(name), "matches as the reference",
              pattern);
  }
  FuzzCheck(HasWildcard(pattern) || matches == (pattern == name),
            "a pattern without wildcards matches itself", pattern);
  return true;
}

void CheckSet(const std::vector<std::string_view>& patterns,
              std::string_view name) {
  GlobSet set;
  for (std::string_view pattern : patterns) set.Add(pattern);
  std::vector<bool> found(patterns.size());
  set.ForEachMatch(name, [&found](uint32_t index) {
    FuzzCheck(!found[index], "no pattern matches twice");
    found[index] = true;
    return true;
  });
  for (size_t i = 0; i < patterns.size(); ++i) {
    FuzzCheck(found[i] == GlobMatch(patterns[i], name),
              "the set matches as its patterns do", patterns[i]);
  }
}

}  // namespace

std::string MakeFuzzInput(std::mt19937* rng) {
  return RandomWords(kWords, (*rng)() % 2 == 0 ? 8 : 60, rng);
}

}  // namespace ksweep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view patterns = ksweep::FuzzText(data, size);
  const size_t last = patterns.rfind('\n');
  std::string_view name;
  if (last != std::string_view::npos) {
    name = patterns.substr(last + 1);
    patterns = patterns.substr(0, last);
  }
  std::vector<std::string_view> good;
  while (!patterns.empty()) {
    const std::string_view pattern = ksweep::TakePart(&patterns, '\n');
    if (ksweep::CheckPattern(pattern, name)) good.push_back(pattern);
  }
  ksweep::CheckSet(good, name);
  return 0;
}
