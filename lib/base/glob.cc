#include "lib/base/glob.h"

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"

namespace ksweep {
namespace {

unsigned char Byte(char c) { return static_cast<unsigned char>(c); }

// The class that starts at pattern[at], a '[': where it ends, and how it
// decides about `c`.
struct ClassMatch {
  size_t end;  // one past the ']'
  bool matches;
};

ClassMatch MatchClass(std::string_view pattern, size_t at, char c) {
  size_t i = at + 1;
  const bool negated = pattern[i] == '!' || pattern[i] == '^';
  if (negated) ++i;
  bool found = false;
  // A ']' in first place is a member, so at least one is read.
  do {
    const char low = pattern[i];
    char high = low;
    if (pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      high = pattern[i + 2];
      i += 2;
    }
    found |= Byte(low) <= Byte(c) && Byte(c) <= Byte(high);
    ++i;
  } while (pattern[i] != ']');
  return {i + 1, found != negated};
}

// The length of the pattern element at `at` if it matches `c`, else 0. Not for
// stars.
size_t MatchOne(std::string_view pattern, size_t at, char c) {
  switch (pattern[at]) {
    case '?':
      return 1;
    case '[': {
      const ClassMatch match = MatchClass(pattern, at, c);
      return match.matches ? match.end - at : 0;
    }
    default:
      return pattern[at] == c ? 1 : 0;
  }
}

// Checks the class at pattern[at] and moves `at` behind it.
std::optional<GlobFault> FindClassFault(std::string_view pattern, size_t* at) {
  const size_t start = *at;
  size_t i = start + 1;
  if (i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^')) ++i;
  const size_t close = pattern.find(']', i + 1);
  if (i >= pattern.size() || close == std::string_view::npos) {
    return GlobFault{start + 1,
                     "'[' without ']'; for a literal '[' use the class '[[]'"};
  }
  for (; i < close; ++i) {
    if (i + 2 >= close || pattern[i + 1] != '-') continue;
    if (Byte(pattern[i]) > Byte(pattern[i + 2])) {
      return GlobFault{i + 1, "a range that ends before it starts"};
    }
    i += 2;
  }
  *at = close + 1;
  return std::nullopt;
}

}  // namespace

bool HasWildcard(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos;
}

std::optional<GlobFault> FindGlobFault(std::string_view pattern) {
  if (pattern.empty()) return GlobFault{1, "empty"};
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '[') {
      ++at;
      continue;
    }
    std::optional<GlobFault> fault = FindClassFault(pattern, &at);
    if (fault.has_value()) return fault;
  }
  return std::nullopt;
}

absl::Status CheckGlob(std::string_view pattern) {
  const std::optional<GlobFault> fault = FindGlobFault(pattern);
  if (!fault.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("malformed pattern '%s' at position %d: %s", Av(pattern),
                      fault->position, Av(fault->what)));
}

bool GlobMatch(std::string_view pattern, std::string_view text) {
  // Only the last star is ever worth going back to: whatever an earlier one
  // could still give up, the last one can take.
  size_t star = std::string_view::npos;
  size_t resume = 0;
  size_t p = 0;
  size_t t = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
      continue;
    }
    const size_t step = p < pattern.size() ? MatchOne(pattern, p, text[t]) : 0;
    if (step != 0) {
      p += step;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace ksweep
