#ifndef KSWEEP_LIB_RESOLVE_SYMBOL_MATCHER_H_
#define KSWEEP_LIB_RESOLVE_SYMBOL_MATCHER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ksweep/symbol.h"
#include "lib/base/name_set.h"
#include "lib/resolve/request_sets.h"
#include "lib/resolve/sweep.h"
#include "lib/resolve/sweep_plan.h"

namespace ksweep {

// Decides which requests a symbol serves, and writes it down in the result.
// Not thread-safe.
class SymbolMatcher {
 public:
  SymbolMatcher(const SweepPlan& plan, bool stop_early, SweepResult* result);

  // Finds the requests of one symbol, for the AddRow() that follows; `hit` is
  // its name in the plan's set, if it is there. False if there are none. Of
  // what is no function it is only noted that it was seen.
  bool Match(const Symbol& symbol, const NameSet::Hit& hit, bool dotted,
             bool pseudo_owner);

  // `stored_name` is the name as it lies in the set, or null.
  void AddRow(const Symbol& symbol, uint32_t owner, const char* stored_name);
  // A function that serves nothing itself; others that are none are passed.
  void AddAlias(const Symbol& symbol, uint32_t owner);
  // A function that one request asks for by its name, whatever the owner.
  void AddPlainRow(const Symbol& symbol, uint32_t owner,
                   const NameSet::Hit& hit);

  // True once the sweep can end early.
  bool is_done() const { return stop_early_ && unseen_ == 0; }

 private:
  void MatchName(const Symbol& symbol, const NameSet::Hit& hit);
  void MatchSuffixes(const Symbol& symbol);
  void MatchGlobs(const Symbol& symbol, std::string_view name);
  void MatchPredicates(const Symbol& symbol);
  void MatchAddress(const Symbol& symbol);
  void AddSoft(const Symbol& symbol, std::string_view base, SoftMatch::How how);
  void NoteOther(const Symbol& symbol, const NameSet::Hit& hit);
  void NoteMarker(const Symbol& symbol, uint8_t marker);
  void NoteSeen(uint32_t id);

  bool Looks(uint32_t request, std::string_view module) const {
    return plan_.any_owner() ||
           plan_.requests()[request].owner().Matches(module);
  }

  bool IsByBtfId(uint32_t request) const {
    return plan_.requests()[request].form() == Request::Form::kBtfId;
  }

  const SweepPlan& plan_;
  SweepResult* const result_;
  const bool has_addresses_;

  RequestIndices matched_;
  absl::InlinedVector<SoftMatch, 4> soft_;

  const bool stop_early_;
  std::vector<bool> seen_ids_;
  uint32_t unseen_ = 0;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_SYMBOL_MATCHER_H_
