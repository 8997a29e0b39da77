#include "lib/resolve/btf_join.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_format.h"
#include "lib/resolve/btf_plan.h"
#include "lib/resolve/btf_rules.h"
#include "lib/resolve/second_pass.h"

namespace ksweep {
namespace {

bool AnyBtfKind(KindSet kinds) {
  for (int i = 0; i < kKindCnt; ++i) {
    const Kind kind = static_cast<Kind>(i);
    if (NeedsBtf(kind) && kinds.Has(kind)) return true;
  }
  return false;
}

// What is known of one name of one owner.
struct NameFacts {
  absl::InlinedVector<const BtfFunc*, 1> funcs;  // mostly one, or none
  uint32_t instances = 0;
  uint64_t first_addr = 0;
  uint64_t last_addr = 0;
  // Some request takes it for its name, so that the rows have all of it.
  bool complete = false;
};

struct OwnerFacts {
  const Btf* btf = nullptr;
  absl::flat_hash_map<std::string_view, NameFacts> names;
};

class BtfJoin {
 public:
  BtfJoin(const BtfJoinInput& input, const SweepResult& sweep,
          std::vector<Candidate>* list, BtfMatches* matches);

  absl::Status Run();

 private:
  using Choice = std::pair<const NameFacts*, const BtfFunc*>;

  bool IsWanted(const Candidate& candidate) const;
  void CollectNames();
  void CountInstances();
  void FindFuncs();
  void ChooseAll();
  absl::Status ChooseAgain();
  std::optional<Choice> Choose(const Candidate& candidate, bool* incomplete);
  const BtfFunc* ChooseFunc(const Btf& btf, const NameFacts& facts,
                            const SymbolRow& row);
  bool Fits(const Btf& btf, const BtfFunc& func) const;
  bool IsRequestedId(const SymbolRow& row, uint32_t id) const;
  bool IsRequestedStruct(const SymbolRow& row, const Btf& btf,
                         const BtfFunc& func) const;
  void Take(const Choice& choice, Candidate* candidate);
  void NoteSeveral();

  const BtfJoinInput& input_;
  const SweepResult& sweep_;
  std::vector<Candidate>& list_;
  BtfMatches* const matches_;
  const bool every_candidate_;
  std::vector<bool> by_name_;  // by request: takes all functions of a name
  absl::flat_hash_map<uint32_t, OwnerFacts> owners_;
  std::vector<Candidate*> incomplete_;
  std::set<std::string_view> several_;  // names of several FUNCs
};

BtfJoin::BtfJoin(const BtfJoinInput& input, const SweepResult& sweep,
                 std::vector<Candidate>* list, BtfMatches* matches)
    : input_(input),
      sweep_(sweep),
      list_(*list),
      matches_(matches),
      every_candidate_(AnyBtfKind(input.kinds)) {
  for (const Request& request : input.requests) {
    by_name_.push_back(request.form() != Request::Form::kAddress &&
                       request.form() != Request::Form::kPredicate);
  }
}

absl::Status BtfJoin::Run() {
  CollectNames();
  CountInstances();
  FindFuncs();
  ChooseAll();
  absl::Status status = ChooseAgain();
  NoteSeveral();
  return status;
}

bool BtfJoin::IsWanted(const Candidate& candidate) const {
  if (candidate.requests == RequestSets::kEmpty) return false;
  // What ftrace cannot hook needs no id.
  if (every_candidate_ && candidate.traceable != Traceable::kNo) return true;
  for (uint32_t request : sweep_.sets.Get(candidate.requests)) {
    if (IsBtfForm(input_.requests[request])) return true;
  }
  return false;
}

void BtfJoin::CollectNames() {
  for (const Candidate& candidate : list_) {
    if (!IsWanted(candidate)) continue;
    const auto [owner, is_new] = owners_.try_emplace(candidate.owner);
    if (is_new) {
      // Nearly all of many are the core's.
      if (candidate.owner == 0) owner->second.names.reserve(list_.size());
      const std::string_view module = sweep_.owners[candidate.owner];
      const absl::StatusOr<const Btf*> btf = input_.store->Get(module);
      if (btf.ok()) {
        owner->second.btf = *btf;
      } else {
        matches_->no_btf[candidate.owner] =
            ExplainNoBtf(module, input_.store, input_.text);
      }
    }
    if (owner->second.btf == nullptr) continue;
    for (const SymbolRow& row : RowsOf(sweep_, candidate)) {
      owner->second.names.try_emplace(row.name());
    }
  }
}

// Rows are in the order of addresses.
void BtfJoin::CountInstances() {
  OwnerFacts* facts = nullptr;
  uint32_t owner = UINT32_MAX;
  for (const SymbolRow& row : sweep_.rows) {
    if (row.owner != owner) {
      const auto found = owners_.find(row.owner);
      facts = found == owners_.end() ? nullptr : &found->second;
      owner = row.owner;
    }
    if (facts == nullptr) continue;
    const auto found = facts->names.find(row.name());
    if (found == facts->names.end()) continue;
    NameFacts& name = found->second;
    for (uint32_t request : sweep_.sets.Get(row.requests)) {
      name.complete |= by_name_[request];
    }
    // A name can be there twice at one address.
    if (row.addr != 0 && row.addr == name.last_addr) continue;
    if (name.instances == 0) name.first_addr = row.addr;
    name.last_addr = row.addr;
    ++name.instances;
  }
}

void BtfJoin::FindFuncs() {
  for (auto& [number, owner] : owners_) {
    if (owner.btf == nullptr) continue;
    for (const BtfFunc& func : owner.btf->funcs()) {
      const auto found = owner.names.find(func.name);
      if (found != owner.names.end()) found->second.funcs.push_back(&func);
    }
  }
}

bool BtfJoin::Fits(const Btf& btf, const BtfFunc& func) const {
  const BtfPrototype proto = btf.Prototype(func);
  for (int i = 0; i < kKindCnt; ++i) {
    const Kind kind = static_cast<Kind>(i);
    if (input_.kinds.Has(kind) && NeedsBtf(kind) &&
        !RefusePrototype(proto, kind, input_.limits, input_.text)) {
      return true;
    }
  }
  return false;
}

bool BtfJoin::IsRequestedId(const SymbolRow& row, uint32_t id) const {
  for (uint32_t index : sweep_.sets.Get(row.requests)) {
    const Request& request = input_.requests[index];
    if (request.form() == Request::Form::kBtfId && request.btf_id() == id) {
      return true;
    }
  }
  return false;
}

bool BtfJoin::IsRequestedStruct(const SymbolRow& row, const Btf& btf,
                                const BtfFunc& func) const {
  for (uint32_t index : sweep_.sets.Get(row.requests)) {
    const Request& request = input_.requests[index];
    if (request.form() == Request::Form::kTakes &&
        TakesStruct(btf, func, request)) {
      return true;
    }
  }
  return false;
}

// Of several FUNCs of one name: the one that was asked for by its id, else by
// its parameters, else the first whose prototype a trampoline can serve.
const BtfFunc* BtfJoin::ChooseFunc(const Btf& btf, const NameFacts& facts,
                                   const SymbolRow& row) {
  if (facts.funcs.size() == 1) return facts.funcs[0];
  for (const BtfFunc* func : facts.funcs) {
    if (IsRequestedId(row, func->id)) return func;
  }
  several_.insert(facts.funcs[0]->name);
  for (const BtfFunc* func : facts.funcs) {
    if (IsRequestedStruct(row, btf, *func)) return func;
  }
  for (const BtfFunc* func : facts.funcs) {
    if (Fits(btf, *func)) return func;
  }
  return facts.funcs[0];
}

// The FUNC of the candidate's name, or of one of its aliases if that one is
// better: asked for by id, or the only function of its name.
std::optional<BtfJoin::Choice> BtfJoin::Choose(const Candidate& candidate,
                                               bool* incomplete) {
  const auto owner = owners_.find(candidate.owner);
  if (owner == owners_.end() || owner->second.btf == nullptr) {
    return std::nullopt;
  }
  const Btf& btf = *owner->second.btf;
  std::optional<Choice> best;
  for (const SymbolRow& row : RowsOf(sweep_, candidate)) {
    const auto found = owner->second.names.find(row.name());
    if (found == owner->second.names.end() || found->second.funcs.empty()) {
      continue;
    }
    const NameFacts& facts = found->second;
    if (!facts.complete) {
      *incomplete = true;
      continue;
    }
    const BtfFunc* const func = ChooseFunc(btf, facts, row);
    if (IsRequestedId(row, func->id)) return Choice(&facts, func);
    if (!best.has_value() ||
        (best->first->instances != 1 && facts.instances == 1)) {
      best = Choice(&facts, func);
    }
  }
  return best;
}

void BtfJoin::Take(const Choice& choice, Candidate* candidate) {
  const auto& [facts, func] = choice;
  BtfMatch& match = matches_->list[candidate->btf_match];
  match.id = func->id;
  match.instances = facts->instances;
  match.first_addr = facts->first_addr;
  match.prototype = owners_.at(candidate->owner).btf->Prototype(*func);
}

void BtfJoin::ChooseAll() {
  matches_->list.reserve(list_.size());
  for (Candidate& candidate : list_) {
    if (!IsWanted(candidate)) continue;
    candidate.btf_match = static_cast<uint32_t>(matches_->list.size());
    matches_->list.emplace_back();
    bool incomplete = false;
    const std::optional<Choice> choice = Choose(candidate, &incomplete);
    if (choice.has_value()) {
      Take(*choice, &candidate);
    } else if (incomplete) {
      incomplete_.push_back(&candidate);
    }
  }
}

// A function asked for by its address or picked by a predicate: whether there
// are others of its name is not among the rows.
absl::Status BtfJoin::ChooseAgain() {
  if (incomplete_.empty()) return absl::OkStatus();
  absl::StatusOr<NameCounts> counts =
      NameCounts::Make(input_.kallsyms, sweep_, /*rows_are_complete=*/false);
  if (!counts.ok()) return counts.status();
  matches_->notes.push_back(absl::StrFormat(
      "kallsyms was read again to see whether %d functions are the only ones "
      "of their names",
      incomplete_.size()));
  for (Candidate* candidate : incomplete_) {
    for (const SymbolRow& row : RowsOf(sweep_, *candidate)) {
      NameFacts& facts = owners_.at(candidate->owner).names.at(row.name());
      if (facts.complete) continue;
      facts.complete = true;
      facts.instances = counts->Of(candidate->owner, row.name());
      facts.first_addr = 0;
    }
    bool incomplete = false;
    const std::optional<Choice> choice = Choose(*candidate, &incomplete);
    if (choice.has_value()) Take(*choice, candidate);
  }
  return absl::OkStatus();
}

void BtfJoin::NoteSeveral() {
  if (several_.empty()) return;
  constexpr size_t kMost = 5;
  std::string names;
  for (auto it = several_.begin(); it != several_.end(); ++it) {
    const auto at = static_cast<size_t>(std::distance(several_.begin(), it));
    if (at == kMost) {
      names += ", …";
      break;
    }
    if (at > 0) names += ", ";
    names += *it;
  }
  matches_->notes.push_back(absl::StrFormat(
      "%d names have several FUNCs in BTF (%s); the first that can be served "
      "is taken",
      several_.size(), names));
}

}  // namespace

absl::Status JoinBtf(const BtfJoinInput& input, const SweepResult& sweep,
                     Candidates* candidates, BtfMatches* matches) {
  return BtfJoin(input, sweep, &candidates->list, matches).Run();
}

}  // namespace ksweep
