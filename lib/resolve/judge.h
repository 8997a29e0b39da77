// The rules: which kinds a candidate fits, and why not.

#ifndef KSWEEP_LIB_RESOLVE_JUDGE_H_
#define KSWEEP_LIB_RESOLVE_JUDGE_H_

#include <optional>
#include <string_view>

#include "ksweep/resolve.h"
#include "lib/base/arena.h"
#include "lib/resolve/btf_join.h"
#include "lib/resolve/candidates.h"
#include "lib/resolve/cookies.h"
#include "lib/resolve/deny.h"
#include "lib/resolve/refusal.h"
#include "lib/resolve/sweep.h"
#include "lib/source/blacklist.h"

namespace ksweep {

// What the rules look at beside the candidate. All outlives the judge.
struct JudgeFacts {
  const SweepResult& sweep;
  const DenySet& denies;
  absl::Span<const Request> requests;
  const Blacklist* blacklist = nullptr;  // null: not known
  ListState filter_list = ListState::kNotNeeded;
  bool by_name = false;
  bool try_untested = false;
  CookieConflicts cookie_conflicts = CookieConflicts::kReport;
  const BtfMatches& btf;
  TraceLimits limits;
  Arena* text;  // for details that are made up
};

class Judge {
 public:
  explicit Judge(const JudgeFacts& facts);

  // Why the candidate is left out whatever the kind: a deny, or two cookies.
  std::optional<Refusal> RefuseAtAll(const Candidate& candidate) const;

  // Why it does not fit `kind`; nothing if it does.
  std::optional<Refusal> Refuse(const Candidate& candidate, Kind kind) const;

  // The cookies of a candidate, without conflict if it is not refused.
  CookieChoice ChooseCookies(const Candidate& candidate) const;

  // Null if none was looked for.
  const BtfMatch* MatchOf(const Candidate& candidate) const {
    return candidate.btf_match == Candidate::kNoBtfMatch
               ? nullptr
               : &facts_.btf.list[candidate.btf_match];
  }

  bool IsUntested(const Candidate& candidate, Kind kind) const {
    return NeedsFilterList(kind) && candidate.traceable == Traceable::kUnknown;
  }

 private:
  bool IsRequestedExactly(const Candidate& candidate) const;
  std::optional<Refusal> RefuseUntraceable(const Candidate& candidate) const;
  std::optional<Refusal> RefuseTrampoline(const Candidate& candidate,
                                          Kind kind) const;
  Refusal RefuseSeveral(const BtfMatch& match, bool core) const;
  std::optional<Refusal> RefusePerfKprobe(const Candidate& candidate) const;
  bool IsInInit(const Candidate& candidate) const;
  bool IsOutsideText(const Candidate& candidate) const;
  uint64_t Marked(Marker marker) const {
    return facts_.sweep.markers[static_cast<size_t>(marker)];
  }

  const JudgeFacts facts_;
  const CookieRule cookies_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_JUDGE_H_
