#include "lib/attach/kinds/fd_budget.h"

#include <cerrno>
#include <string>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

struct Budget {
  uint64_t open = 0;  // now
  uint64_t need = 0;  // limit that is enough
  FdLimit limit;
};

absl::Status TooFew(const Budget& budget, uint64_t cnt, std::string_view what,
                    std::string_view remedy) {
  return ErrnoStatus(
      EMFILE,
      absl::StrFormat("%s: needs %d descriptors and %d to work with, of the "
                      "%d that the process may have %d are open; %s, or attach "
                      "to fewer functions",
                      Av(what), cnt, kFdsToWorkWith, budget.limit.soft,
                      budget.open, Av(remedy)));
}

std::string RaiseRemedy(const Budget& budget, RaiseLimit raise) {
  if (budget.need > budget.limit.hard) {
    return absl::StrFormat(
        "raise the hard limit, which is %d, to %d (as root: ulimit -Hn)",
        budget.limit.hard, budget.need);
  }
  if (raise == RaiseLimit::kYes) return "a security module may keep the limit";
  return absl::StrFormat(
      "raise the limit to %d (ulimit -n; the hard limit allows %d) or let it "
      "be raised",
      budget.need, budget.limit.hard);
}

}  // namespace

absl::Status ReserveFds(PerfSys& sys, uint64_t cnt, std::string_view what,
                        RaiseLimit raise) {
  Budget budget;
  const int open = sys.OpenFdCnt();
  if (open < 0 || sys.GetFdLimit(&budget.limit) < 0) return absl::OkStatus();
  budget.open = static_cast<uint64_t>(open);
  budget.need = budget.open + cnt + kFdsToWorkWith;
  if (budget.need <= budget.limit.soft) return absl::OkStatus();
  if (raise == RaiseLimit::kYes && budget.need <= budget.limit.hard &&
      sys.SetFdLimit({budget.need, budget.limit.hard}) >= 0) {
    return absl::OkStatus();
  }
  return TooFew(budget, cnt, what, RaiseRemedy(budget, raise));
}

}  // namespace ksweep
