#include "lib/resolve/judge.h"

#include <string>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/resolve/btf_rules.h"

namespace ksweep {
namespace {

constexpr std::string_view kInitDetail = "freed after boot";

bool Within(uint64_t addr, uint64_t begin, uint64_t end) {
  return begin != 0 && begin <= addr && addr < end;
}

}  // namespace

Judge::Judge(const JudgeFacts& facts)
    : facts_(facts), cookies_(facts.requests, facts.cookie_conflicts) {}

bool Judge::IsRequestedExactly(const Candidate& candidate) const {
  for (uint32_t request : facts_.sweep.sets.Get(candidate.requests)) {
    if (facts_.requests[request].is_exact()) return true;
  }
  return false;
}

std::optional<Refusal> Judge::RefuseAtAll(const Candidate& candidate) const {
  const absl::Span<const SymbolRow> names = RowsOf(facts_.sweep, candidate);
  const std::optional<uint32_t> deny =
      facts_.denies.FindRequest(names, facts_.sweep.owners[candidate.owner]);
  if (deny.has_value()) {
    return Refusal{Reason::kDenied,
                   facts_.text->Copy(facts_.requests[*deny].ToString())};
  }
  const DefaultDeny* entry = facts_.denies.FindDefault(names);
  if (entry != nullptr && !IsRequestedExactly(candidate)) {
    return Refusal{Reason::kDefaultDenied, entry->reason};
  }
  const CookieChoice cookies = ChooseCookies(candidate);
  if (cookies.has_conflict()) {
    return Refusal{Reason::kCookieConflict,
                   facts_.text->Copy(DescribeConflict(cookies))};
  }
  return std::nullopt;
}

CookieChoice Judge::ChooseCookies(const Candidate& candidate) const {
  return cookies_.Choose(facts_.sweep.sets.Get(candidate.requests));
}

std::optional<Refusal> Judge::Refuse(const Candidate& candidate,
                                     Kind kind) const {
  if (candidate.addr == 0 && !facts_.by_name &&
      candidate.traceable != Traceable::kNo) {
    return Refusal{Reason::kAddressesHidden,
                   "kallsyms shows no address for it"};
  }
  if (!NeedsFilterList(kind)) return RefusePerfKprobe(candidate);
  std::optional<Refusal> refusal = RefuseUntraceable(candidate);
  if (!refusal.has_value() && NeedsBtf(kind)) {
    return RefuseTrampoline(candidate, kind);
  }
  return refusal;
}

std::optional<Refusal> Judge::RefuseUntraceable(
    const Candidate& candidate) const {
  if (facts_.by_name && candidate.ksym_cnt != 1) {
    return Refusal{Reason::kAddressesHidden,
                   "by name the kernel takes the first of several"};
  }
  switch (candidate.traceable) {
    case Traceable::kYes:
      return std::nullopt;
    case Traceable::kUndecidable:
      return Refusal{Reason::kUndecidable,
                     facts_.text->Copy(absl::StrFormat(
                         "%d in kallsyms, %d in the filter list",
                         candidate.ksym_cnt, candidate.list_cnt))};
    case Traceable::kNo:
      if (IsInInit(candidate)) {
        return Refusal{Reason::kInitSection, kInitDetail};
      }
      if (candidate.addr == 0) {
        // Its aliases are not known, and the list has only one of them.
        return Refusal{Reason::kNotTraceable,
                       "not in the kernel's filter list by this name, and "
                       "addresses that would tell its other names are hidden"};
      }
      return Refusal{Reason::kNotTraceable, "not in the kernel's filter list"};
    case Traceable::kUnknown:
      if (IsInInit(candidate)) {
        return Refusal{Reason::kInitSection, kInitDetail};
      }
      if (!facts_.try_untested && !IsRequestedExactly(candidate)) {
        return Refusal{Reason::kUndecidable, "there is no filter list"};
      }
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Refusal> Judge::RefuseTrampoline(const Candidate& candidate,
                                               Kind kind) const {
  const bool core = candidate.owner == 0;
  for (const SymbolRow& row : RowsOf(facts_.sweep, candidate)) {
    if (!core) break;
    const std::optional<Refusal> refusal = RefuseTraceName(row.name(), kind);
    if (refusal.has_value()) return refusal;
  }
  const auto no_btf = facts_.btf.no_btf.find(candidate.owner);
  if (no_btf != facts_.btf.no_btf.end()) return no_btf->second;
  const BtfMatch* const match = MatchOf(candidate);
  if (match == nullptr || match->id == 0) {
    return Refusal{Reason::kNoBtf, "BTF has no function of that name"};
  }
  if (match->instances != 1) return RefuseSeveral(*match, core);
  return RefusePrototype(match->prototype, kind, facts_.limits, facts_.text);
}

// Linux kernel/bpf/verifier.c, bpf_check_attach_target(): from the id to the
// name, and from there, in the kernel or in the module, to the first symbol.
Refusal Judge::RefuseSeveral(const BtfMatch& match, bool core) const {
  std::string first = "the first";
  if (core && match.first_addr != 0) {
    first += absl::StrFormat(" (0x%x)", match.first_addr);
  }
  return {Reason::kAmbiguous,
          facts_.text->Copy(absl::StrFormat(
              "by BTF id the kernel takes %s of %d functions of that name",
              first, match.instances))};
}

// Linux kernel/kprobes.c, check_kprobe_address_safe(): text of the kernel or of
// a module, outside of what the blacklist names. The filter list has no say.
std::optional<Refusal> Judge::RefusePerfKprobe(
    const Candidate& candidate) const {
  if (candidate.addr == 0) {
    return Refusal{Reason::kAddressesHidden,
                   "a kprobe is made by address here"};
  }
  if (facts_.blacklist != nullptr &&
      facts_.blacklist->Contains(candidate.addr)) {
    return Refusal{Reason::kBlacklisted, "on the kprobe blacklist"};
  }
  if (IsInInit(candidate)) return Refusal{Reason::kInitSection, kInitDetail};
  if (IsOutsideText(candidate)) {
    return Refusal{Reason::kNotTraceable, "outside of the kernel's text"};
  }
  return std::nullopt;
}

bool Judge::IsInInit(const Candidate& candidate) const {
  return candidate.owner == 0 &&
         (Within(candidate.addr, Marked(Marker::kInitBegin),
                 Marked(Marker::kInitEnd)) ||
          Within(candidate.addr, Marked(Marker::kSinittext),
                 Marked(Marker::kEinittext)));
}

bool Judge::IsOutsideText(const Candidate& candidate) const {
  if (candidate.owner != 0 || Marked(Marker::kStext) == 0 ||
      Marked(Marker::kEtext) == 0) {
    return false;
  }
  return !Within(candidate.addr, Marked(Marker::kStext),
                 Marked(Marker::kEtext));
}

}  // namespace ksweep
