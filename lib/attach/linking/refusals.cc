#include "lib/attach/linking/refusals.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {

absl::Status Refusals::Add(RefusedFunction refused, bool untested) {
  refused_.push_back(std::move(refused));
  untested_cnt_ += untested;
  return CheckCnt();
}

absl::Status Refusals::Check() const {
  if (options_.on_refused != OnRefused::kFail || refused_.empty()) {
    return absl::OkStatus();
  }
  return Error("all others are accepted, see AttachOptions::on_refused");
}

std::vector<RefusedFunction> Refusals::Take() && {
  std::sort(refused_.begin(), refused_.end(),
            [](const RefusedFunction& a, const RefusedFunction& b) {
              return a.slot < b.slot;
            });
  return std::move(refused_);
}

absl::Status Refusals::CheckCnt() const {
  const size_t cnt = refused_.size();
  if (untested_cnt_ > kMaxUntestedRefused) {
    return Error(
        "too many that no list says are traceable; resolve "
        "with the kernel's filter list");
  }
  if (options_.on_refused == OnRefused::kFail && cnt >= kMaxNamedRefused) {
    return Error("maybe more, see AttachOptions::on_refused");
  }
  if (options_.on_refused == OnRefused::kSkipUpTo &&
      cnt > options_.max_refused) {
    return Error(
        absl::StrFormat("maybe more, and AttachOptions::max_refused is %d",
                        options_.max_refused));
  }
  return absl::OkStatus();
}

absl::Status Refusals::Error(std::string_view remedy) const {
  const auto first =
      std::min_element(refused_.begin(), refused_.end(),
                       [](const RefusedFunction& a, const RefusedFunction& b) {
                         return a.slot < b.slot;
                       });
  // That it is not the call is known by now, so EINVAL means one thing only.
  const absl::StatusCode code = first->err == EINVAL
                                    ? absl::StatusCode::kNotFound
                                    : CodeOfErrno(first->err);
  return ErrnoStatus(
      first->err, code,
      absl::StrFormat("the kernel refuses %d of %d functions for %s: %s (%s; "
                      "%s)",
                      refused_.size(), total_, Av(KindName(first->kind)),
                      Names(), first->reason, Av(remedy)));
}

// The first of the refused functions, for an error that has the first's errno.
std::string Refusals::Names() const {
  std::vector<const RefusedFunction*> by_slot;
  for (const RefusedFunction& refused : refused_) by_slot.push_back(&refused);
  std::sort(by_slot.begin(), by_slot.end(),
            [](const RefusedFunction* a, const RefusedFunction* b) {
              return a->slot < b->slot;
            });
  std::string text;
  for (size_t i = 0; i < by_slot.size() && i < kMaxNamedRefused; ++i) {
    absl::StrAppendFormat(&text, "%s%s", i == 0 ? "" : ", ",
                          by_slot[i]->function);
    if (by_slot[i]->err == by_slot[0]->err) continue;
    absl::StrAppendFormat(&text, " (%s)", ErrnoText(by_slot[i]->err));
  }
  if (by_slot.size() > kMaxNamedRefused) text += ", …";
  return text;
}

}  // namespace ksweep
