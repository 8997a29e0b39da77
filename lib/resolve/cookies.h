// Which cookie a function gets from the requests that it matches.

#ifndef KSWEEP_LIB_RESOLVE_COOKIES_H_
#define KSWEEP_LIB_RESOLVE_COOKIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ksweep/resolve.h"

namespace ksweep {

// The cookies of one function, or two requests that cannot agree.
struct CookieChoice {
  uint64_t cookie = 0;
  std::vector<uint64_t> more;  // ascending, all above `cookie`
  const Request* conflict[2] = {nullptr, nullptr};

  bool has_conflict() const { return conflict[0] != nullptr; }
};

class CookieRule {
 public:
  // `requests` have to outlive it.
  CookieRule(absl::Span<const Request> requests, CookieConflicts policy);

  // For a function that `matched`, ascending indices, match. Requests without
  // a cookie have no say. O(matched), without allocation if there is at most
  // one cookie.
  CookieChoice Choose(absl::Span<const uint32_t> matched) const;

 private:
  CookieChoice Agree(absl::Span<const uint32_t> matched) const;
  CookieChoice First(absl::Span<const uint32_t> matched) const;
  CookieChoice ExactBeforeGlobs(absl::Span<const uint32_t> matched) const;
  CookieChoice All(absl::Span<const uint32_t> matched) const;

  absl::Span<const Request> requests_;
  CookieConflicts policy_;
  bool any_cookie_ = false;
};

// "'vfs_*' has cookie 1, 'vfs_read' has 2".
std::string DescribeConflict(const CookieChoice& choice);

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_COOKIES_H_
