#include <algorithm>
#include <memory>

#include "absl/strings/str_format.h"
#include "ksweep/resolve.h"
#include "lib/base/abseil.h"

namespace ksweep {
namespace {

// More than any landing pad and breakpoint, less than the least distance of
// two functions.
constexpr uint64_t kEntryBytes = 16;

std::string Join(absl::Span<const std::string_view> names) {
  constexpr size_t kMost = 5;
  std::string joined;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i == kMost) {
      return joined + absl::StrFormat(" and %d more", names.size() - kMost);
    }
    if (i > 0) joined += ", ";
    joined += names[i];
  }
  return joined;
}

std::string Describe(const Request& request, const Unmatched& unmatched) {
  std::string text = absl::StrFormat("'%s': %s", request.ToString(),
                                     Av(ReasonName(unmatched.reason)));
  std::string names = Join(unmatched.candidates);
  // Of no help to who asked for that very name.
  if (unmatched.candidates.size() == 1 && names == request.name()) names = "";
  if (!unmatched.detail.empty()) {
    text += absl::StrFormat(", %s", Av(unmatched.detail));
  }
  if (!names.empty()) text += absl::StrFormat(" (there are: %s)", names);
  return text;
}

}  // namespace

Resolution::Resolution() {
  static const auto* const kNothing =
      new std::shared_ptr<const Data>(std::make_shared<Data>());
  data_ = *kNothing;
}

std::vector<uint32_t> Resolution::ForRequest(size_t index) const {
  std::vector<uint32_t> served;
  for (uint32_t i = 0; i < targets().size(); ++i) {
    const absl::Span<const uint32_t> requests = targets()[i].requests;
    if (std::binary_search(requests.begin(), requests.end(), index)) {
      served.push_back(i);
    }
  }
  return served;
}

absl::StatusOr<const Target*> Resolution::FindByIp(uint64_t ip) const {
  if (by_name()) {
    return absl::FailedPreconditionError(
        "the targets are known by name only; the kernel hides addresses");
  }
  const auto after = std::upper_bound(
      targets().begin(), targets().end(), ip,
      [](uint64_t value, const Target& target) { return value < target.addr; });
  if (ip != 0 && after != targets().begin() &&
      ip - std::prev(after)->addr < kEntryBytes) {
    return &*std::prev(after);
  }
  return absl::NotFoundError(
      absl::StrFormat("no target is entered at 0x%x", ip));
}

absl::Status Resolution::CheckMissing() const {
  constexpr size_t kMost = 10;
  std::string text;
  size_t cnt = 0;
  bool misnamed = false;
  for (const Unmatched& unmatched : unmatched()) {
    const Request& request = requests()[unmatched.request];
    if (!request.is_exact() || unmatched.reason == Reason::kDenied) continue;
    misnamed |= unmatched.reason == Reason::kNotFound ||
                unmatched.reason == Reason::kNotAFunction ||
                unmatched.reason == Reason::kModuleNotLoaded;
    if (++cnt > kMost) continue;
    if (cnt > 1) text += "; ";
    text += Describe(request, unmatched);
  }
  if (cnt == 0) return absl::OkStatus();
  if (cnt > kMost) text += absl::StrFormat("; and %d more", cnt - kMost);
  return absl::NotFoundError(absl::StrFormat(
      "%d %s without a target: %s. %s, or have missing ones reported instead "
      "of failing",
      cnt, cnt == 1 ? "request is" : "requests are", text,
      misnamed ? "Correct the name, use a glob" : "Leave out what cannot be"));
}

}  // namespace ksweep
