#include "lib/resolve/assemble.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/resolve/symbol_name.h"

namespace ksweep {
namespace {

using NameList = std::set<std::string_view>;

class Assembler {
 public:
  Assembler(const SweepPlan& plan, const BtfPlan& btf, const SweepResult& sweep,
            const Candidates& candidates, const Judge& judge, KindSet kinds,
            ResolutionBuilder* builder);

  void Run();

 private:
  // A candidate that fits some kind, or that does not stay.
  struct Passed {
    const Candidate* candidate = nullptr;
    KindSet kinds;
    absl::Span<const Misfit> misfits;
    bool untested = false;
  };
  struct Omitted {
    const Candidate* candidate = nullptr;
    Refusal refusal;
  };

  void Examine(const Candidate& candidate);
  void NoteInstance(const Candidate& candidate);
  bool IsAmbiguous(uint32_t request) const;
  void OmitSharedAddresses();
  void FindAmbiguous();
  void OmitAmbiguous();
  void SortOmitted();
  void AddTarget(const Passed& passed);
  void AddOmission(const Omitted& omitted);
  void AddUnmatched();
  Unmatched Explain(uint32_t index);
  std::string_view DescribeInstances(uint32_t request);
  std::string_view DescribeNoSymbol(uint32_t request);
  bool HasOwner(const Request& request) const;
  void CollectOmittedNames();
  absl::Span<const std::string_view> CopyNames(const NameList& names);
  absl::Span<const uint32_t> CopySet(absl::Span<const uint32_t> requests);

  const Request& RequestAt(uint32_t index) const {
    return plan_.requests()[index];
  }
  absl::Span<const uint32_t> RequestsOf(const Candidate& candidate) const {
    return sweep_.sets.Get(candidate.requests);
  }
  std::string_view NameOf(const Candidate& candidate) const {
    return sweep_.rows[candidate.first_row].name();
  }
  // The requests of a candidate that it serves: not those that are ambiguous.
  RequestIndices Served(const Candidate& candidate) const;

  const SweepPlan& plan_;
  const BtfPlan& btf_;
  const SweepResult& sweep_;
  const Candidates& candidates_;
  const Judge& judge_;
  ResolutionBuilder* const builder_;
  std::vector<Kind> kinds_;

  std::vector<Passed> passed_;
  std::vector<Omitted> omitted_;  // in the order of candidates
  std::vector<uint32_t> serves_;  // by request: candidates that passed
  std::vector<bool> ambiguous_;   // by request
  bool any_ambiguous_ = false;
  // By request of the form kBtfId: all functions of its name.
  absl::flat_hash_map<uint32_t, std::vector<uint64_t>> instances_;
  // By request: names of what was left out or exists beside it.
  absl::flat_hash_map<uint32_t, NameList> names_;
  absl::flat_hash_map<uint32_t, Refusal> first_refusal_;

  std::vector<std::string_view> modules_;  // by owner, copied
  absl::Span<const uint32_t> last_copied_set_;
};

Assembler::Assembler(const SweepPlan& plan, const BtfPlan& btf,
                     const SweepResult& sweep, const Candidates& candidates,
                     const Judge& judge, KindSet kinds,
                     ResolutionBuilder* builder)
    : plan_(plan),
      btf_(btf),
      sweep_(sweep),
      candidates_(candidates),
      judge_(judge),
      builder_(builder),
      serves_(plan.requests().size()),
      ambiguous_(plan.requests().size()) {
  for (int i = 0; i < kKindCnt; ++i) {
    if (kinds.Has(static_cast<Kind>(i))) kinds_.push_back(static_cast<Kind>(i));
  }
  for (std::string_view owner : sweep.owners) {
    modules_.push_back(builder->text().Copy(owner));
  }
}

void Assembler::Run() {
  passed_.reserve(candidates_.list.size());
  for (const Candidate& candidate : candidates_.list) {
    // One that only could have been at a requested ftrace location.
    if (candidate.requests != RequestSets::kEmpty) Examine(candidate);
  }
  OmitSharedAddresses();
  FindAmbiguous();
  if (any_ambiguous_) OmitAmbiguous();
  builder_->targets().reserve(passed_.size());
  for (const Passed& passed : passed_) AddTarget(passed);
  builder_->omissions().reserve(omitted_.size());
  for (const Omitted& omitted : omitted_) AddOmission(omitted);
  AddUnmatched();
}

// A BTF id says a name, and not which of its functions is meant.
void Assembler::NoteInstance(const Candidate& candidate) {
  for (uint32_t request : RequestsOf(candidate)) {
    if (RequestAt(request).form() == Request::Form::kBtfId) {
      instances_[request].push_back(candidate.addr);
    }
  }
}

void Assembler::Examine(const Candidate& candidate) {
  NoteInstance(candidate);
  std::optional<Refusal> refusal = judge_.RefuseAtAll(candidate);
  if (refusal.has_value()) {
    omitted_.push_back({&candidate, *refusal});
    return;
  }
  Passed passed;
  passed.candidate = &candidate;
  absl::InlinedVector<Misfit, 4> misfits;
  for (Kind kind : kinds_) {
    std::optional<Refusal> misfit = judge_.Refuse(candidate, kind);
    if (misfit.has_value()) {
      misfits.push_back({kind, misfit->reason, misfit->detail});
    } else {
      passed.kinds.Add(kind);
      passed.untested |= judge_.IsUntested(candidate, kind);
    }
  }
  if (passed.kinds.empty()) {
    omitted_.push_back({&candidate, {misfits[0].reason, misfits[0].detail}});
    return;
  }
  passed.misfits = builder_->text().Copy(absl::Span<const Misfit>(misfits));
  passed_.push_back(passed);
}

// No address is attached to twice. Two owners at one address are no kernel's,
// but a saved text can say so.
void Assembler::OmitSharedAddresses() {
  const auto shares = [](const Passed& a, const Passed& b) {
    return a.candidate->addr == b.candidate->addr && a.candidate->addr != 0;
  };
  const auto first = std::adjacent_find(passed_.begin(), passed_.end(), shares);
  if (first == passed_.end()) return;
  std::vector<Passed> kept(passed_.begin(), first + 1);
  for (auto it = first + 1; it != passed_.end(); ++it) {
    if (!shares(kept.back(), *it)) {
      kept.push_back(*it);
      continue;
    }
    omitted_.push_back(
        {it->candidate,
         {Reason::kAmbiguous, "another owner has a function at this address"}});
  }
  passed_ = std::move(kept);
  SortOmitted();
}

bool Assembler::IsAmbiguous(uint32_t request) const {
  if (serves_[request] == 0) return false;
  if (RequestAt(request).unique() && serves_[request] > 1) return true;
  const auto instances = instances_.find(request);
  return instances != instances_.end() && instances->second.size() > 1;
}

void Assembler::FindAmbiguous() {
  for (const Passed& passed : passed_) {
    for (uint32_t request : RequestsOf(*passed.candidate)) {
      ++serves_[request];
    }
  }
  for (uint32_t i = 0; i < serves_.size(); ++i) {
    if (!IsAmbiguous(i)) continue;
    ambiguous_[i] = true;
    any_ambiguous_ = true;
    serves_[i] = 0;
  }
}

RequestIndices Assembler::Served(const Candidate& candidate) const {
  RequestIndices served;
  for (uint32_t request : RequestsOf(candidate)) {
    if (!ambiguous_[request]) served.push_back(request);
  }
  return served;
}

// Moves those that only ambiguous requests ask for to the omissions.
void Assembler::OmitAmbiguous() {
  std::vector<Passed> kept;
  for (const Passed& passed : passed_) {
    for (uint32_t request : RequestsOf(*passed.candidate)) {
      if (ambiguous_[request])
        names_[request].insert(NameOf(*passed.candidate));
    }
    if (!Served(*passed.candidate).empty()) {
      kept.push_back(passed);
    } else {
      omitted_.push_back(
          {passed.candidate,
           {Reason::kAmbiguous, "one of several, where one is demanded"}});
    }
  }
  passed_ = std::move(kept);
  SortOmitted();
}

// Candidates lie in their order, so their places are it.
void Assembler::SortOmitted() {
  std::sort(omitted_.begin(), omitted_.end(),
            [](const Omitted& a, const Omitted& b) {
              return a.candidate < b.candidate;
            });
}

// Tens of thousands of targets serve the same requests: one copy for all that
// follow each other.
absl::Span<const uint32_t> Assembler::CopySet(
    absl::Span<const uint32_t> requests) {
  if (requests != last_copied_set_) {
    last_copied_set_ = builder_->text().Copy(requests);
  }
  return last_copied_set_;
}

void Assembler::AddTarget(const Passed& passed) {
  const Candidate& candidate = *passed.candidate;
  const absl::Span<const SymbolRow> rows = RowsOf(sweep_, candidate);
  Target target;
  target.addr = candidate.addr;
  const CookieChoice cookies = judge_.ChooseCookies(candidate);
  target.cookie = cookies.cookie;
  target.more_cookies =
      builder_->text().Copy(absl::MakeConstSpan(cookies.more));
  target.name = builder_->text().Copy(rows[0].name());
  target.module = modules_[candidate.owner];
  if (rows.size() > 1) {
    std::vector<std::string_view> aliases;
    for (const SymbolRow& row : rows.subspan(1)) {
      aliases.push_back(builder_->text().Copy(row.name()));
    }
    target.aliases =
        builder_->text().Copy(absl::Span<const std::string_view>(aliases));
  }
  target.requests = any_ambiguous_ ? CopySet(Served(candidate))
                                   : CopySet(RequestsOf(candidate));
  target.kinds = passed.kinds;
  target.misfits = passed.misfits;
  const BtfMatch* const match = judge_.MatchOf(candidate);
  if (match != nullptr) target.btf_id = match->id;
  target.type = rows[0].type;
  target.clone = candidate.clone;
  target.untested = passed.untested;
  builder_->targets().push_back(target);
}

void Assembler::AddOmission(const Omitted& omitted) {
  const Candidate& candidate = *omitted.candidate;
  Omission omission;
  omission.addr = candidate.addr;
  omission.name = builder_->text().Copy(NameOf(candidate));
  omission.module = modules_[candidate.owner];
  omission.reason = omitted.refusal.reason;
  omission.detail = omitted.refusal.detail;
  omission.request = RequestsOf(candidate)[0];
  builder_->omissions().push_back(omission);
}

void Assembler::CollectOmittedNames() {
  for (const Omitted& omitted : omitted_) {
    for (uint32_t request : RequestsOf(*omitted.candidate)) {
      if (serves_[request] != 0 || ambiguous_[request]) continue;
      first_refusal_.try_emplace(request, omitted.refusal);
      names_[request].insert(NameOf(*omitted.candidate));
    }
  }
}

void Assembler::AddUnmatched() {
  CollectOmittedNames();
  for (const OtherName& other : candidates_.other_names) {
    if (serves_[other.request] == 0 &&
        !first_refusal_.contains(other.request)) {
      names_[other.request].insert(other.name);
    }
  }
  for (const auto& [request, name] : sweep_.other_at_addr) {
    if (serves_[request] == 0 && !first_refusal_.contains(request)) {
      names_[request].insert(name);
    }
  }
  for (uint32_t i = 0; i < serves_.size(); ++i) {
    if (serves_[i] == 0 && !RequestAt(i).deny()) {
      builder_->unmatched().push_back(Explain(i));
    }
  }
}

bool Assembler::HasOwner(const Request& request) const {
  if (!request.owner().is_module()) return true;
  for (std::string_view owner : sweep_.owners) {
    if (request.owner().Matches(owner)) return true;
  }
  return false;
}

Unmatched Assembler::Explain(uint32_t index) {
  const Request& request = RequestAt(index);
  Unmatched unmatched;
  unmatched.request = index;
  const auto refusal = first_refusal_.find(index);
  if (refusal != first_refusal_.end()) {
    unmatched.reason = refusal->second.reason;
    unmatched.detail = refusal->second.detail;
  } else if (ambiguous_[index]) {
    unmatched.reason = Reason::kAmbiguous;
    unmatched.detail = DescribeInstances(index);
  } else if (btf_.refusals.contains(index) &&
             (HasOwner(request) ||
              btf_.refusals.at(index).reason != Reason::kNoModuleBtf)) {
    unmatched.reason = btf_.refusals.at(index).reason;
    unmatched.detail = btf_.refusals.at(index).detail;
  } else if (!HasOwner(request)) {
    unmatched.reason = Reason::kModuleNotLoaded;
    unmatched.detail = builder_->text().Copy(request.owner().module_pattern());
  } else if (sweep_.seen[index].other) {
    unmatched.reason = Reason::kNotAFunction;
    if (request.form() == Request::Form::kExact) {
      names_[index].insert(request.name());
    }
  } else if (request.form() == Request::Form::kGlob &&
             IsNeverTargetPattern(request.name())) {
    unmatched.reason = Reason::kNotAFunction;
  } else if (request.form() == Request::Form::kBtfId) {
    unmatched.detail = DescribeNoSymbol(index);
  }
  unmatched.candidates = CopyNames(names_[index]);
  return unmatched;
}

std::string_view Assembler::DescribeInstances(uint32_t request) {
  const auto found = instances_.find(request);
  if (found == instances_.end()) return {};
  std::string text = "functions of that name:";
  for (uint64_t addr : found->second) text += absl::StrFormat(" 0x%x", addr);
  return builder_->text().Copy(text);
}

std::string_view Assembler::DescribeNoSymbol(uint32_t request) {
  for (const BtfName& name : btf_.names) {
    if (name.request != request) continue;
    return builder_->text().Copy(
        absl::StrFormat("BTF calls it '%s', and no symbol has that name: it "
                        "may be inlined everywhere",
                        Av(name.name)));
  }
  return {};
}

absl::Span<const std::string_view> Assembler::CopyNames(const NameList& names) {
  std::vector<std::string_view> copied;
  for (std::string_view name : names) {
    copied.push_back(builder_->text().Copy(name));
  }
  return builder_->text().Copy(absl::Span<const std::string_view>(copied));
}

}  // namespace

void Assemble(const SweepPlan& plan, const BtfPlan& btf,
              const SweepResult& sweep, const Candidates& candidates,
              const Judge& judge, KindSet kinds, ResolutionBuilder* builder) {
  Assembler(plan, btf, sweep, candidates, judge, kinds, builder).Run();
}

}  // namespace ksweep
