#include "lib/base/glob_set.h"

#include <algorithm>
#include <cstring>

#include "lib/base/glob.h"

namespace ksweep {
namespace {

// The literal bytes in front of the first wildcard, and behind the last one. A
// class ends in ']', which a name can contain as well: a tail that could be
// the end of a class counts as none.
std::string_view LiteralHead(std::string_view pattern) {
  return pattern.substr(0, pattern.find_first_of("*?["));
}

std::string_view LiteralTail(std::string_view pattern) {
  const size_t last = pattern.find_last_of("*?[]");
  return last == std::string_view::npos ? pattern : pattern.substr(last + 1);
}

}  // namespace

uint64_t GlobSet::HeadWord(std::string_view name, size_t length) {
  uint64_t word = 0;
  std::memcpy(&word, name.data(), length);
  return word;
}

uint64_t GlobSet::TailWord(std::string_view name, size_t length) {
  uint64_t word = 0;
  std::memcpy(&word, name.data() + name.size() - length, length);
  return word;
}

bool GlobSet::Matches(uint32_t index, std::string_view name) const {
  const Glob& glob = globs_[index];
  return glob.is_star || GlobMatch(glob.pattern, name);
}

uint32_t GlobSet::Add(std::string_view pattern) {
  const uint32_t index = static_cast<uint32_t>(globs_.size());
  globs_.push_back({std::string(pattern), pattern == "*"});
  has_star_ |= pattern == "*";

  const std::string_view head = LiteralHead(pattern);
  const std::string_view tail = LiteralTail(pattern);
  if (!head.empty()) {
    const size_t length = std::min<size_t>(head.size(), 8);
    by_head_[length][HeadWord(head, length)].push_back(index);
  } else if (!tail.empty()) {
    const size_t length = std::min<size_t>(tail.size(), 8);
    by_tail_[length][TailWord(tail, length)].push_back(index);
  } else {
    others_.push_back(index);
  }
  return index;
}

}  // namespace ksweep
