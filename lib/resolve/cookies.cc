#include "lib/resolve/cookies.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace ksweep {
namespace {

// Takes `request`'s cookie, which has to be the one taken before.
void Merge(const Request& request, const Request** taken_from,
           CookieChoice* choice) {
  if (*taken_from == nullptr) {
    *taken_from = &request;
    choice->cookie = *request.cookie();
  } else if (choice->cookie != *request.cookie()) {
    choice->conflict[0] = *taken_from;
    choice->conflict[1] = &request;
  }
}

}  // namespace

CookieRule::CookieRule(absl::Span<const Request> requests,
                       CookieConflicts policy)
    : requests_(requests), policy_(policy) {
  for (const Request& request : requests) {
    any_cookie_ |= request.cookie().has_value();
  }
}

CookieChoice CookieRule::Choose(absl::Span<const uint32_t> matched) const {
  if (!any_cookie_) return {};
  switch (policy_) {
    case CookieConflicts::kReport:
      break;
    case CookieConflicts::kFirstWins:
      return First(matched);
    case CookieConflicts::kExactBeatsGlob:
      return ExactBeforeGlobs(matched);
    case CookieConflicts::kSplitLinks:
      return All(matched);
  }
  return Agree(matched);
}

CookieChoice CookieRule::Agree(absl::Span<const uint32_t> matched) const {
  CookieChoice choice;
  const Request* taken_from = nullptr;
  for (uint32_t index : matched) {
    const Request& request = requests_[index];
    if (!request.cookie().has_value()) continue;
    Merge(request, &taken_from, &choice);
    if (choice.has_conflict()) break;
  }
  return choice;
}

CookieChoice CookieRule::First(absl::Span<const uint32_t> matched) const {
  CookieChoice choice;
  for (uint32_t index : matched) {
    if (!requests_[index].cookie().has_value()) continue;
    choice.cookie = *requests_[index].cookie();
    break;
  }
  return choice;
}

CookieChoice CookieRule::ExactBeforeGlobs(
    absl::Span<const uint32_t> matched) const {
  CookieChoice choice;
  const Request* taken_from = nullptr;
  for (uint32_t index : matched) {
    const Request& request = requests_[index];
    if (!request.is_exact() || !request.cookie().has_value()) continue;
    Merge(request, &taken_from, &choice);
    if (choice.has_conflict()) break;
  }
  return taken_from == nullptr ? Agree(matched) : choice;
}

CookieChoice CookieRule::All(absl::Span<const uint32_t> matched) const {
  std::vector<uint64_t> cookies;
  for (uint32_t index : matched) {
    if (requests_[index].cookie().has_value()) {
      cookies.push_back(*requests_[index].cookie());
    }
  }
  std::sort(cookies.begin(), cookies.end());
  cookies.erase(std::unique(cookies.begin(), cookies.end()), cookies.end());
  CookieChoice choice;
  if (cookies.empty()) return choice;
  choice.cookie = cookies.front();
  choice.more.assign(cookies.begin() + 1, cookies.end());
  return choice;
}

std::string DescribeConflict(const CookieChoice& choice) {
  return absl::StrFormat(
      "'%s' has cookie %d, '%s' has %d", choice.conflict[0]->ToString(),
      *choice.conflict[0]->cookie(), choice.conflict[1]->ToString(),
      *choice.conflict[1]->cookie());
}

}  // namespace ksweep
