#include "lib/resolve/join.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/resolve/second_pass.h"
#include "lib/resolve/symbol_name.h"
#include "lib/source/filter_list.h"

namespace ksweep {
namespace {

constexpr uint32_t kNoOwner = UINT32_MAX;

// From a module's name in a list to its number in the sweep. Lists are sorted
// by owner, so the last answer is kept.
class OwnerFinder {
 public:
  explicit OwnerFinder(const SweepResult& sweep) {
    for (uint32_t i = 0; i < sweep.owners.size(); ++i) {
      numbers_.emplace(sweep.owners[i], i);
    }
  }

  uint32_t Find(std::string_view module) {
    if (module.empty()) return 0;
    if (module != last_name_) {
      const auto found = numbers_.find(module);
      last_ = found == numbers_.end() ? kNoOwner : found->second;
      last_name_ = std::string(module);
    }
    return last_;
  }

 private:
  absl::flat_hash_map<std::string_view, uint32_t> numbers_;
  std::string last_name_;
  uint32_t last_ = kNoOwner;
};

// Whether the list can call a symbol so: some kernels strip the suffix of a
// link-time optimising build in one list and not in the other.
bool IsListName(const SymbolRow& row, std::string_view name) {
  return row.name() == name || StripLlvm(row.name()) == name;
}

// Whether some request asks for what the list calls so.
bool IsRequested(const SweepPlan& plan, const FilterFunc& func) {
  const auto owned = [&](uint32_t request) {
    return plan.requests()[request].owner().Matches(func.module);
  };
  bool requested = false;
  const NameSet::Hit hit = plan.names().Find(func.name);
  if (hit.id != NameSet::kNone) {
    plan.ForEachUse(hit, [&](const NameUse& use) {
      requested |= use.what == NameUse::What::kExact && owned(use.request);
    });
  }
  const bool core = func.module.empty();
  const GlobSet& globs = core ? plan.core_globs() : plan.module_globs();
  const absl::Span<const uint32_t> requests =
      core ? plan.core_glob_requests() : plan.module_glob_requests();
  globs.ForEachMatch(func.name, [&](uint32_t glob) {
    requested |= owned(requests[glob]);
    return !requested;
  });
  return requested;
}

// Joins the list with addresses.
class AddressJoin {
 public:
  AddressJoin(const SweepPlan& plan, SweepResult* sweep, Candidates* candidates,
              JoinOutcome* outcome);

  // Takes one entry; false once nothing more can be learnt.
  bool Take(const FilterFunc& func);
  void Finish();

 private:
  Candidate* FindByLocation(const FilterFunc& func, uint32_t owner);
  Candidate* FindHidden(const FilterFunc& func, uint32_t owner);
  bool HasName(const Candidate& candidate, std::string_view name) const;
  void ServeNear(const FilterFunc& func, Candidate* candidate);
  void NoteUnjoined(const FilterFunc& func);
  void MergeFound();

  const SweepPlan& plan_;
  SweepResult* const sweep_;
  const Candidates& candidates_;
  std::vector<Candidate>& list_;
  JoinOutcome* const outcome_;
  OwnerFinder owners_;
  // Candidates without address, by owner and name.
  absl::flat_hash_map<std::pair<std::string_view, uint32_t>,
                      std::vector<uint32_t>>
      hidden_;
  size_t first_shown_ = 0;  // candidates without address come first
  size_t cursor_ = 0;
  size_t undecided_;
  bool wants_modules_ = false;
  // Only exact requests: the list need not be read for what it has else.
  bool only_candidates_matter_;
};

AddressJoin::AddressJoin(const SweepPlan& plan, SweepResult* sweep,
                         Candidates* candidates, JoinOutcome* outcome)
    : plan_(plan),
      sweep_(sweep),
      candidates_(*candidates),
      list_(candidates->list),
      outcome_(outcome),
      owners_(*sweep),
      undecided_(list_.size()),
      only_candidates_matter_(plan.only_exact()) {
  for (uint32_t i = 0; i < list_.size(); ++i) {
    wants_modules_ |= list_[i].owner != 0;
    if (list_[i].addr != 0) continue;
    first_shown_ = i + 1;
    hidden_[{StripLlvm(sweep->rows[list_[i].first_row].name()), list_[i].owner}]
        .push_back(i);
  }
  // What is first in the list is taken last.
  for (auto& [name, indices] : hidden_) {
    std::reverse(indices.begin(), indices.end());
  }
  cursor_ = first_shown_;
}

bool AddressJoin::HasName(const Candidate& candidate,
                          std::string_view name) const {
  const absl::Span<const SymbolRow> rows = RowsOf(*sweep_, candidate);
  return std::any_of(rows.begin(), rows.end(), [name](const SymbolRow& row) {
    return IsListName(row, name);
  });
}

// The candidate that starts at most kMaxLocationOffset before the location and
// has the entry's name. The list is mostly ascending, so the search starts
// where the last one ended.
Candidate* AddressJoin::FindByLocation(const FilterFunc& func, uint32_t owner) {
  constexpr size_t kSteps = 16;
  const uint64_t lowest =
      func.location - std::min(func.location, SweepPlan::kMaxLocationOffset);
  const auto below = [lowest](const Candidate& candidate, uint64_t) {
    return candidate.addr < lowest;
  };
  size_t at = cursor_;
  if (at > first_shown_ &&
      (at == list_.size() || list_[at - 1].addr >= lowest)) {
    at = first_shown_;
  }
  size_t steps = 0;
  while (at < list_.size() && list_[at].addr < lowest && steps < kSteps) {
    ++at;
    ++steps;
  }
  if (at < list_.size() && list_[at].addr < lowest) {
    at = static_cast<size_t>(
        std::lower_bound(list_.begin() + static_cast<ptrdiff_t>(at),
                         list_.end(), lowest, below) -
        list_.begin());
  }
  cursor_ = at;
  for (; at < list_.size() && list_[at].addr <= func.location; ++at) {
    if (list_[at].owner == owner && HasName(list_[at], func.name)) {
      return &list_[at];
    }
  }
  return nullptr;
}

// Where kallsyms shows no addresses, the location tells the start: on x86-64
// functions are aligned to 16, and only a landing pad of 4 bytes can precede
// the location.
Candidate* AddressJoin::FindHidden(const FilterFunc& func, uint32_t owner) {
  const auto found = hidden_.find({StripLlvm(func.name), owner});
  if (found == hidden_.end() || found->second.empty()) return nullptr;
  const uint64_t low_nibble = func.location & 0xf;
  if (low_nibble != 0 && low_nibble != 4) return nullptr;
  Candidate* candidate = &list_[found->second.back()];
  found->second.pop_back();
  candidate->addr = func.location - low_nibble;
  return candidate;
}

void AddressJoin::ServeNear(const FilterFunc& func, Candidate* candidate) {
  for (const NearAddress& near : NearRequests(candidates_, candidate->addr)) {
    if (near.owner == candidate->owner &&
        plan_.requests()[near.request].addr() == func.location) {
      candidate->requests =
          sweep_->sets.With(candidate->requests, near.request);
    }
  }
}

void AddressJoin::NoteUnjoined(const FilterFunc& func) {
  if (!IsRequested(plan_, func)) return;
  outcome_->unjoined.push_back({func.location, sweep_->text.Copy(func.name),
                                sweep_->text.Copy(func.module)});
}

bool AddressJoin::Take(const FilterFunc& func) {
  // The list has the core's functions first, and for those of modules the
  // kernel searches each one's symbols: on a machine with many modules they are
  // nearly all of the time.
  if (!func.module.empty() && !wants_modules_) return false;
  const uint32_t owner = owners_.Find(func.module);
  Candidate* candidate = nullptr;
  if (owner != kNoOwner) {
    candidate = FindByLocation(func, owner);
    if (candidate == nullptr && !hidden_.empty()) {
      candidate = FindHidden(func, owner);
    }
  }
  if (candidate == nullptr) {
    NoteUnjoined(func);
    return true;
  }
  if (candidate->traceable != Traceable::kYes) {
    candidate->traceable = Traceable::kYes;
    --undecided_;
  }
  if (!candidates_.near.empty()) ServeNear(func, candidate);
  return !only_candidates_matter_ || undecided_ > 0;
}

void AddressJoin::Finish() {
  for (Candidate& candidate : list_) {
    if (candidate.traceable != Traceable::kYes) {
      candidate.traceable = Traceable::kNo;
    }
  }
  if (hidden_.empty()) return;
  SortCandidates(*sweep_, &list_);
  MergeFound();
}

// An address that the list showed can be that of another candidate, if kallsyms
// hides only some: the same function by two of its names.
void AddressJoin::MergeFound() {
  size_t kept = 0;
  for (size_t i = 1; i < list_.size(); ++i) {
    Candidate& last = list_[kept];
    if (list_[i].addr != 0 && list_[i].addr == last.addr &&
        list_[i].owner == last.owner) {
      last.requests = sweep_->sets.Union(last.requests, list_[i].requests);
      if (list_[i].traceable == Traceable::kYes) {
        last.traceable = Traceable::kYes;
      }
    } else {
      list_[++kept] = list_[i];
    }
  }
  if (!list_.empty()) list_.resize(kept + 1);
}

// Counts the lines of each name and owner in the list without addresses.
class CountJoin {
 public:
  CountJoin(SweepResult* sweep, std::vector<Candidate>* list)
      : sweep_(sweep), list_(*list), owners_(*sweep) {
    for (const Candidate& candidate : list_) {
      for (const SymbolRow& row : RowsOf(*sweep, candidate)) {
        counts_[{StripLlvm(row.name()), row.owner}] = 0;
      }
    }
  }

  bool Take(const FilterFunc& func) {
    const auto found =
        counts_.find({StripLlvm(func.name), owners_.Find(func.module)});
    if (found != counts_.end()) ++found->second;
    return true;
  }

  void Finish(const NameCounts& ksyms, bool by_name) {
    for (Candidate& candidate : list_) Decide(ksyms, by_name, &candidate);
  }

 private:
  void Decide(const NameCounts& ksyms, bool by_name, Candidate* candidate) {
    candidate->traceable = Traceable::kNo;
    for (const SymbolRow& row : RowsOf(*sweep_, *candidate)) {
      const std::string_view name = StripLlvm(row.name());
      const uint32_t in_list = counts_[{name, row.owner}];
      const uint32_t in_kallsyms = ksyms.Of(row.owner, name);
      if (in_list == 0) continue;
      // By name the kernel takes the one that it can hook.
      if (in_list == in_kallsyms || by_name) {
        candidate->traceable = Traceable::kYes;
        return;
      }
      candidate->traceable = Traceable::kUndecidable;
      candidate->list_cnt = in_list;
      candidate->ksym_cnt = in_kallsyms;
    }
  }

  SweepResult* const sweep_;
  std::vector<Candidate>& list_;
  OwnerFinder owners_;
  absl::flat_hash_map<std::pair<std::string_view, uint32_t>, uint32_t> counts_;
};

// True if the rows have every symbol of every name that they have.
bool RowsAreComplete(const SweepPlan& plan, const SweepResult& sweep) {
  if (!plan.starts().empty()) return false;
  for (const SymbolRow& row : sweep.rows) {
    if (row.requests == RequestSets::kEmpty ||
        StripLlvm(row.name()).size() != row.name().size()) {
      return false;
    }
  }
  return true;
}

// The same over all owners: no request looks into some of them only.
bool RowsAreCompleteOverOwners(const SweepPlan& plan,
                               const SweepResult& sweep) {
  for (const Request& request : plan.requests()) {
    if (!request.deny() && !request.owner().is_any()) return false;
  }
  return RowsAreComplete(plan, sweep);
}

// By name the kernel takes the first function of a name, whatever its owner: a
// name has to be the only one.
void KeepUniqueNames(const SweepResult& sweep, const NameCounts& counts,
                     std::vector<Candidate>* list) {
  for (Candidate& candidate : *list) {
    candidate.ksym_cnt = counts.Total(sweep.rows[candidate.first_row].name());
    if (candidate.ksym_cnt != 1) candidate.traceable = Traceable::kUnknown;
  }
}

void NoteLines(const ListFile& file, uint64_t funcs, uint64_t malformed,
               JoinOutcome* outcome) {
  if (malformed != 0) {
    outcome->notes.push_back(absl::StrFormat("%d malformed lines in %s",
                                             malformed, file.stats().path));
  }
  if (funcs == 0) {
    outcome->notes.push_back(absl::StrFormat(
        "%s lists no function, so the kernel accepts none; is it the kernel's "
        "own?",
        file.stats().path));
  }
}

absl::Status JoinByAddress(const JoinInput& input, ListFile* file,
                           SweepResult* sweep, Candidates* candidates,
                           JoinOutcome* outcome) {
  outcome->list = ListState::kAddresses;
  uint64_t funcs = 0, malformed = 0;
  AddressJoin join(input.plan, sweep, candidates, outcome);
  absl::Status status = ReadFilterFuncs(
      file, /*with_addrs=*/true,
      [&](const FilterFunc& func) {
        ++funcs;
        return join.Take(func);
      },
      &malformed);
  join.Finish();
  if (status.ok()) NoteLines(*file, funcs, malformed, outcome);
  return status;
}

absl::Status JoinByCount(const JoinInput& input, ListFile* file,
                         SweepResult* sweep, Candidates* candidates,
                         JoinOutcome* outcome) {
  outcome->list = ListState::kNames;
  uint64_t funcs = 0, malformed = 0;
  CountJoin join(sweep, &candidates->list);
  absl::Status status = ReadFilterFuncs(
      file, /*with_addrs=*/false,
      [&](const FilterFunc& func) {
        ++funcs;
        return join.Take(func);
      },
      &malformed);
  if (!status.ok()) return status;
  NoteLines(*file, funcs, malformed, outcome);
  const bool complete = outcome->by_name
                            ? RowsAreCompleteOverOwners(input.plan, *sweep)
                            : RowsAreComplete(input.plan, *sweep);
  absl::StatusOr<NameCounts> ksyms =
      NameCounts::Make(input.kallsyms, *sweep, complete);
  if (!ksyms.ok()) return ksyms.status();
  join.Finish(*ksyms, outcome->by_name);
  if (outcome->by_name) KeepUniqueNames(*sweep, *ksyms, &candidates->list);
  return absl::OkStatus();
}

void NoteFile(const ListFile& file, JoinOutcome* outcome) {
  outcome->files.push_back(file.stats());
  outcome->read_ns += file.read_ns();
}

}  // namespace

absl::Status JoinFilterList(const JoinInput& input, SweepResult* sweep,
                            Candidates* candidates, JoinOutcome* outcome) {
  absl::StatusOr<ListFile> with_addrs =
      ListFile::Open(input.files, KernelFile::kFilterFunctionsAddrs);
  if (with_addrs.ok()) {
    absl::Status status =
        JoinByAddress(input, &*with_addrs, sweep, candidates, outcome);
    NoteFile(*with_addrs, outcome);
    return status;
  }
  absl::Status shortage = ShortageOf(with_addrs.status());
  if (!shortage.ok()) return shortage;
  outcome->by_name = sweep->addresses() == AddressState::kHidden;
  absl::StatusOr<ListFile> plain =
      ListFile::Open(input.files, KernelFile::kFilterFunctions);
  if (plain.ok()) {
    outcome->notes.push_back(absl::StrFormat(
        "no list with addresses, copies of a name are counted (%s)",
        with_addrs.status().message()));
    absl::Status status =
        JoinByCount(input, &*plain, sweep, candidates, outcome);
    NoteFile(*plain, outcome);
    return status;
  }
  shortage = ShortageOf(plain.status());
  if (!shortage.ok()) return shortage;
  outcome->list = ListState::kMissing;
  outcome->missing = plain.status();
  outcome->notes.push_back(absl::StrFormat(
      "no filter list, so nothing tells what the kernel accepts (%s)",
      plain.status().message()));
  if (!outcome->by_name) return absl::OkStatus();
  absl::StatusOr<NameCounts> ksyms = NameCounts::Make(
      input.kallsyms, *sweep, RowsAreCompleteOverOwners(input.plan, *sweep));
  if (!ksyms.ok()) return ksyms.status();
  KeepUniqueNames(*sweep, *ksyms, &candidates->list);
  return absl::OkStatus();
}

}  // namespace ksweep
