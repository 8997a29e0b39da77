// Globs in the obvious way, for comparison: a list of byte sets and stars,
// matched by recursion. Exponential, so for short inputs only.

#ifndef KSWEEP_SELFTESTS_UNIT_BASE_GLOB_REFERENCE_H_
#define KSWEEP_SELFTESTS_UNIT_BASE_GLOB_REFERENCE_H_

#include <bitset>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace ksweep {

class ReferenceGlob {
 public:
  // Nothing if `pattern` is malformed.
  static std::optional<ReferenceGlob> Parse(std::string_view pattern) {
    ReferenceGlob glob;
    if (pattern.empty()) return std::nullopt;
    while (!pattern.empty()) {
      Part part;
      if (pattern[0] != '[') {
        part.star = pattern[0] == '*';
        part.bytes.set(Index(pattern[0]));
        if (pattern[0] == '?') part.bytes.set();
        pattern.remove_prefix(1);
      } else if (!TakeClass(&pattern, &part.bytes)) {
        return std::nullopt;
      }
      glob.parts_.push_back(part);
    }
    return glob;
  }

  bool Matches(std::string_view text) const { return MatchesFrom(0, text); }

 private:
  struct Part {
    bool star = false;
    std::bitset<256> bytes;
  };

  static size_t Index(char c) { return static_cast<unsigned char>(c); }

  // `[`, perhaps a negation, at least one member, `]`.
  static bool TakeClass(std::string_view* pattern, std::bitset<256>* bytes) {
    std::string_view rest = pattern->substr(1);
    const bool negated = !rest.empty() && (rest[0] == '!' || rest[0] == '^');
    if (negated) rest.remove_prefix(1);
    const size_t cnt = rest.find(']', 1);
    if (rest.empty() || cnt == std::string_view::npos) return false;
    std::string_view members = rest.substr(0, cnt);
    while (!members.empty()) {
      const bool range = members.size() >= 3 && members[1] == '-';
      const size_t low = Index(members[0]);
      const size_t high = range ? Index(members[2]) : low;
      if (low > high) return false;
      for (size_t i = low; i <= high; ++i) bytes->set(i);
      members.remove_prefix(range ? 3 : 1);
    }
    if (negated) bytes->flip();
    *pattern = rest.substr(cnt + 1);
    return true;
  }

  bool MatchesFrom(size_t at, std::string_view text) const {
    if (at == parts_.size()) return text.empty();
    const Part& part = parts_[at];
    if (part.star && MatchesFrom(at + 1, text)) return true;
    if (text.empty()) return false;
    if (part.star) return MatchesFrom(at, text.substr(1));
    return part.bytes.test(Index(text[0])) &&
           MatchesFrom(at + 1, text.substr(1));
  }

  std::vector<Part> parts_;
};

}  // namespace ksweep

#endif  // KSWEEP_SELFTESTS_UNIT_BASE_GLOB_REFERENCE_H_
