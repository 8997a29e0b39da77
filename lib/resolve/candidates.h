// Functions out of symbols: one candidate for each address and owner.

#ifndef KSWEEP_LIB_RESOLVE_CANDIDATES_H_
#define KSWEEP_LIB_RESOLVE_CANDIDATES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "lib/resolve/sweep.h"

namespace ksweep {

// What the filter list says of a candidate.
enum class Traceable : uint8_t {
  kUnknown,  // no list was read
  kYes,
  kNo,
  kUndecidable,  // the list has fewer lines of the name than kallsyms
};

struct Candidate {
  static constexpr uint32_t kNoBtfMatch = UINT32_MAX;

  uint64_t addr = 0;
  uint32_t owner = 0;
  // Its names in SweepResult::rows; the first is its name, the others its
  // aliases in order of preference.
  uint32_t first_row = 0;
  uint32_t row_cnt = 0;
  uint32_t requests = RequestSets::kEmpty;
  uint32_t list_cnt = 0;  // of an undecidable one: lines in the list, and
  uint32_t ksym_cnt = 0;  // symbols
  uint32_t btf_match = kNoBtfMatch;  // in BtfMatches::list
  Traceable traceable = Traceable::kUnknown;
  bool clone = false;
};

// An address asked for that a candidate serves if ftrace hooks in there.
struct NearAddress {
  uint64_t start = 0;
  uint32_t owner = 0;
  uint32_t request = 0;
};

// Names that exist for a request, although it does not take them.
struct OtherName {
  uint32_t request = 0;
  std::string_view name;
};

struct Candidates {
  std::vector<Candidate> list;    // ascending by address, owner's name, name
  std::vector<NearAddress> near;  // ascending by start
  // Clones not asked for, and system calls with another prefix.
  std::vector<OtherName> other_names;
};

// Sorts the rows of `sweep` and groups them.
Candidates MakeCandidates(const SweepPlan& plan, bool clones,
                          SweepResult* sweep);

inline absl::Span<const SymbolRow> RowsOf(const SweepResult& sweep,
                                          const Candidate& candidate) {
  return absl::MakeConstSpan(sweep.rows)
      .subspan(candidate.first_row, candidate.row_cnt);
}

// The address requests that a function starting there could serve.
absl::Span<const NearAddress> NearRequests(const Candidates& candidates,
                                           uint64_t start);

// The order of candidates and of what becomes of them.
void SortCandidates(const SweepResult& sweep, std::vector<Candidate>* list);

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_CANDIDATES_H_
