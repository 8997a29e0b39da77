#include "lib/attach/linking/isolate.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

// As many slots as there are.
constexpr size_t kNoStep = std::numeric_limits<size_t>::max() / 2;

// At most `cnt` different numbers below `n`. Each leading part is spread over
// the range, and in no regular pattern, which refused slots may have as well.
std::vector<size_t> Spread(size_t n, size_t cnt) {
  std::vector<size_t> picks;
  // The multiples of the golden ratio, modulo 1, as fractions of 2^32.
  uint32_t fraction = 0;
  while (picks.size() < std::min(n, cnt)) {
    const size_t pick = static_cast<size_t>((uint64_t{fraction} * n) >> 32);
    fraction += 0x9e3779b9;
    if (std::find(picks.begin(), picks.end(), pick) == picks.end()) {
      picks.push_back(pick);
    }
  }
  return picks;
}

class Isolation {
 public:
  Isolation(LinkMaker& maker, std::vector<uint32_t> slots, size_t max_per_link,
            bool call_works)
      : maker_(maker),
        pending_(std::move(slots)),
        limit_(max_per_link),
        call_works_(call_works) {}

  absl::Status Run() {
    while (!pending_.empty()) {
      absl::Status status = LinkWindow();
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  // Each makes one step: a link, some slots out, or a smaller link size.
  absl::Status LinkWindow();
  absl::Status Isolate(size_t end, const absl::Status& refused);

  absl::StatusOr<Link> Try(size_t first, size_t cnt);
  void Keep(Link link, size_t cnt);
  absl::Status CheckCall(const absl::Status& refused);
  std::vector<uint32_t> PickProbes() const;
  absl::StatusOr<int> FindNext(size_t end, int err);
  absl::Status Refuse(uint32_t slot, int err);

  LinkMaker& maker_;
  // Neither linked nor refused, ascending. The window, which is to be the next
  // link, is the front of it.
  std::vector<uint32_t> pending_;
  size_t limit_;           // of the window
  size_t proven_ = 0;      // slots at the front that were accepted in tries
  size_t last_cnt_ = 0;    // of the last try
  size_t step_ = kNoStep;  // slots to go on looking with
  uint32_t refused_cnt_ = 0;
  bool call_works_;
};

absl::StatusOr<Link> Isolation::Try(size_t first, size_t cnt) {
  last_cnt_ = cnt;
  absl::StatusOr<Link> link =
      maker_.MakeLink(absl::MakeConstSpan(pending_).subspan(first, cnt));
  call_works_ |= link.ok();
  return link;
}

absl::Status Isolation::LinkWindow() {
  const size_t cnt = std::min(limit_, pending_.size());
  absl::StatusOr<Link> link = Try(0, cnt);
  if (link.ok()) {
    Keep(*std::move(link), cnt);
    return absl::OkStatus();
  }
  absl::Status status = link.status();
  if (maker_.FaultOf(ErrnoOf(status)) == Fault::kTarget)
    status = Isolate(cnt, status);
  // Also while isolating: the kernel may look at the functions before it asks
  // for the memory.
  if (maker_.FaultOf(ErrnoOf(status)) == Fault::kMemory && last_cnt_ > 1) {
    limit_ = last_cnt_ / 2;
    return absl::OkStatus();
  }
  return status;
}

void Isolation::Keep(Link link, size_t cnt) {
  maker_.Keep(std::move(link), absl::MakeConstSpan(pending_).first(cnt));
  pending_.erase(pending_.begin(),
                 pending_.begin() + static_cast<ptrdiff_t>(cnt));
  proven_ -= std::min(proven_, cnt);
}

// Takes refused slots out of the window, of `end` slots and `refused` as a
// whole, until it is time to try it again.
absl::Status Isolation::Isolate(size_t end, const absl::Status& refused) {
  if (!call_works_) {
    const size_t pending_before = pending_.size();
    absl::Status status = CheckCall(refused);
    if (!status.ok()) return status;
    if (pending_.size() != pending_before) return absl::OkStatus();
  }
  if (proven_ >= end) {
    return Annotate(refused,
                    "functions are refused together that were accepted in "
                    "parts; was a module unloaded meanwhile?");
  }
  int err = ErrnoOf(refused);
  while (true) {
    const absl::StatusOr<int> found = FindNext(end, err);
    if (!found.ok()) return found.status();
    if (*found == 0) return absl::OkStatus();
    absl::Status status = Refuse(pending_[proven_], *found);
    if (!status.ok()) return status;
    if (std::has_single_bit(refused_cnt_)) return absl::OkStatus();
    --end;
    err = 0;  // not known whether there are more
  }
}

// Ok if some slot is accepted; what was refused before it is refused. Else it
// is the call.
absl::Status Isolation::CheckCall(const absl::Status& refused) {
  if (pending_.size() == 1) return refused;
  std::vector<std::pair<uint32_t, int>> refused_alone;
  for (uint32_t slot : PickProbes()) {
    last_cnt_ = 1;
    const absl::StatusOr<Link> link = maker_.MakeLink({&slot, 1});
    call_works_ = link.ok();
    if (call_works_) break;
    const int err = ErrnoOf(link.status());
    if (maker_.FaultOf(err) != Fault::kTarget) return link.status();
    refused_alone.emplace_back(slot, err);
  }
  if (!call_works_) {
    const bool tried_all = refused_alone.size() == pending_.size();
    return Annotate(
        refused,
        absl::StrFormat(
            "the call is refused for each of %d functions "
            "alone too, %s",
            refused_alone.size(),
            tried_all ? "which are all" : "so it is not about some of them"));
  }
  for (const auto& [slot, err] : refused_alone) {
    absl::Status status = Refuse(slot, err);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Trusted ones first.
std::vector<uint32_t> Isolation::PickProbes() const {
  std::vector<uint32_t> probes;
  for (size_t i : Spread(pending_.size(), 4 * kMaxProbes)) {
    probes.push_back(pending_[i]);
  }
  std::stable_partition(probes.begin(), probes.end(), [this](uint32_t slot) {
    return maker_.IsTrusted(slot);
  });
  if (probes.size() > kMaxProbes) probes.resize(kMaxProbes);
  return probes;
}

// Moves proven_ on to the next refused slot of the window's first `end` and
// returns its errno; 0 if there is none. `err` is what these from proven_ on
// were refused with as a whole, 0 if they were not tried.
//
// The errno is the slot's own: of the sets that end in it only the slot itself
// is not accepted.
absl::StatusOr<int> Isolation::FindNext(size_t end, int err) {
  const size_t begin = proven_;
  size_t step = step_;
  while (proven_ < end && (err == 0 || end - proven_ > 1)) {
    const size_t rest = end - proven_;
    const size_t cnt = std::min(step, err == 0 ? rest : rest / 2);
    const absl::StatusOr<Link> link = Try(proven_, cnt);
    if (link.ok()) {
      proven_ += cnt;
      step = std::min(2 * step, kNoStep);
      continue;
    }
    const int refusal = ErrnoOf(link.status());
    if (maker_.FaultOf(refusal) != Fault::kTarget) return link.status();
    err = refusal;
    end = proven_ + cnt;
    step = kNoStep;
  }
  step_ = std::max<size_t>(1, std::bit_floor(proven_ - begin + 1) / 2);
  return err;
}

absl::Status Isolation::Refuse(uint32_t slot, int err) {
  const auto place = std::lower_bound(pending_.begin(), pending_.end(), slot);
  pending_.erase(place);
  ++refused_cnt_;
  return maker_.Refuse(slot, err);
}

}  // namespace

Fault FaultOf(int err) {
  switch (err) {
    // kprobe.multi: a bad address up to Linux 6.12, and from 6.18 on; a name.
    case EINVAL:
    case ENOENT:
    case ESRCH:
    // Kprobes: a blacklisted function, and a probe inside of an instruction.
    case EADDRNOTAVAIL:
    case EILSEQ:
    // A function that something else has patched.
    case EBUSY:
      return Fault::kTarget;
    case ENOMEM:
      return Fault::kMemory;
    default:
      return Fault::kCall;
  }
}

absl::Status LinkAccepted(LinkMaker& maker, std::vector<uint32_t> slots,
                          size_t max_per_link, bool call_works) {
  return Isolation(maker, std::move(slots), max_per_link, call_works).Run();
}

}  // namespace ksweep
