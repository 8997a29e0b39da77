#include "lib/resolve/candidates.h"

#include <algorithm>
#include <bit>

namespace ksweep {
namespace {

// Decides the matches that depend on what else was seen.
void SettleSoftMatches(bool clones, SweepResult* sweep,
                       Candidates* candidates) {
  const int prefix = sweep->syscall_prefixes == 0
                         ? -1
                         : std::countr_zero(sweep->syscall_prefixes);
  for (const SoftMatch& soft : sweep->soft) {
    SymbolRow& row = sweep->rows[soft.row];
    bool taken = false;
    switch (soft.how) {
      case SoftMatch::How::kLlvm:
        taken = !sweep->seen[soft.request].exact;
        row.plain |= taken;
        break;
      case SoftMatch::How::kClone:
        taken = clones;
        row.clone |= taken;
        break;
      case SoftMatch::How::kBtfClone:
        break;
      case SoftMatch::How::kSyscall:
        taken = soft.detail == prefix;
        row.plain |= taken;
        break;
      case SoftMatch::How::kNear:
        candidates->near.push_back({row.addr, row.owner, soft.request});
        continue;
    }
    if (taken) {
      row.requests = sweep->sets.With(row.requests, soft.request);
    } else if (soft.how != SoftMatch::How::kLlvm) {
      candidates->other_names.push_back({soft.request, row.name()});
    }
  }
  std::sort(candidates->near.begin(), candidates->near.end(),
            [](const NearAddress& a, const NearAddress& b) {
              return a.start < b.start;
            });
}

bool PlaceLess(const SweepResult& sweep, const SymbolRow& a,
               const SymbolRow& b) {
  if (a.addr != b.addr) return a.addr < b.addr;
  if (a.owner != b.owner) return sweep.owners[a.owner] < sweep.owners[b.owner];
  // Without addresses every symbol is a function of its own.
  return a.addr == 0 && a.name() < b.name();
}

// The core's rows come in order, those of modules behind them do not.
void SortRows(SweepResult* sweep) {
  const auto less = [sweep](const SymbolRow& a, const SymbolRow& b) {
    return PlaceLess(*sweep, a, b);
  };
  std::vector<SymbolRow>& rows = sweep->rows;
  const auto middle = std::is_sorted_until(rows.begin(), rows.end(), less);
  if (middle == rows.end()) return;
  std::sort(middle, rows.end(), less);
  std::inplace_merge(rows.begin(), middle, rows.end(), less);
}

int RankOfType(char type) {
  switch (type) {
    case 'T':
      return 0;
    case 'W':
    case 'w':
      return 1;
    default:
      return 2;
  }
}

bool IsRequestedByName(const SweepPlan& plan, const SweepResult& sweep,
                       const SymbolRow& row) {
  for (uint32_t index : sweep.sets.Get(row.requests)) {
    const Request& request = plan.requests()[index];
    if (request.form() == Request::Form::kSyscall ||
        request.form() == Request::Form::kBtfId) {
      return true;
    }
    if (request.form() == Request::Form::kExact &&
        request.name() == row.name()) {
      return true;
    }
  }
  return false;
}

// Removes names that are there twice, of which the better type stays.
size_t RemoveRepeatedNames(absl::Span<SymbolRow> rows) {
  std::sort(rows.begin(), rows.end(),
            [](const SymbolRow& a, const SymbolRow& b) {
              if (a.name() != b.name()) return a.name() < b.name();
              const int a_rank = RankOfType(a.type);
              const int b_rank = RankOfType(b.type);
              return a_rank != b_rank ? a_rank < b_rank : a.type < b.type;
            });
  const auto last = std::unique(rows.begin(), rows.end(),
                                [](const SymbolRow& a, const SymbolRow& b) {
                                  return a.name() == b.name();
                                });
  return static_cast<size_t>(last - rows.begin());
}

// Puts the best name of one function in front; returns how many it has.
uint32_t RankNames(const SweepPlan& plan, const SweepResult& sweep,
                   absl::Span<SymbolRow> rows) {
  if (rows.size() == 1) return 1;
  const size_t cnt = RemoveRepeatedNames(rows);
  std::sort(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(cnt),
            [&](const SymbolRow& a, const SymbolRow& b) {
              const bool a_exact = IsRequestedByName(plan, sweep, a);
              const bool b_exact = IsRequestedByName(plan, sweep, b);
              if (a_exact != b_exact) return a_exact;
              const int a_rank = RankOfType(a.type);
              const int b_rank = RankOfType(b.type);
              if (a_rank != b_rank) return a_rank < b_rank;
              if (a.name_len != b.name_len) return a.name_len < b.name_len;
              return a.name() < b.name();
            });
  return static_cast<uint32_t>(cnt);
}

bool SameFunction(const SymbolRow& a, const SymbolRow& b) {
  return a.addr == b.addr && a.owner == b.owner && a.addr != 0;
}

bool IsNear(const Candidates& candidates, const SymbolRow& row) {
  const absl::Span<const NearAddress> near = NearRequests(candidates, row.addr);
  return std::any_of(near.begin(), near.end(), [&row](const NearAddress& n) {
    return n.owner == row.owner;
  });
}

}  // namespace

absl::Span<const NearAddress> NearRequests(const Candidates& candidates,
                                           uint64_t start) {
  const auto [first, last] = std::equal_range(
      candidates.near.begin(), candidates.near.end(), NearAddress{start, 0, 0},
      [](const NearAddress& a, const NearAddress& b) {
        return a.start < b.start;
      });
  return absl::MakeConstSpan(candidates.near)
      .subspan(static_cast<size_t>(first - candidates.near.begin()),
               static_cast<size_t>(last - first));
}

void SortCandidates(const SweepResult& sweep, std::vector<Candidate>* list) {
  const auto less = [&sweep](const Candidate& a, const Candidate& b) {
    if (a.addr != b.addr) return a.addr < b.addr;
    if (a.owner != b.owner) {
      return sweep.owners[a.owner] < sweep.owners[b.owner];
    }
    return sweep.rows[a.first_row].name() < sweep.rows[b.first_row].name();
  };
  if (!std::is_sorted(list->begin(), list->end(), less)) {
    std::sort(list->begin(), list->end(), less);
  }
}

Candidates MakeCandidates(const SweepPlan& plan, bool clones,
                          SweepResult* sweep) {
  Candidates candidates;
  SettleSoftMatches(clones, sweep, &candidates);
  SortRows(sweep);
  std::vector<SymbolRow>& rows = sweep->rows;
  candidates.list.reserve(rows.size());
  for (size_t first = 0, last; first < rows.size(); first = last) {
    uint32_t requests = rows[first].requests;
    for (last = first + 1;
         last < rows.size() && SameFunction(rows[first], rows[last]); ++last) {
      requests = sweep->sets.Union(requests, rows[last].requests);
    }
    if (requests == RequestSets::kEmpty && !IsNear(candidates, rows[first])) {
      continue;
    }
    Candidate candidate;
    candidate.addr = rows[first].addr;
    candidate.owner = rows[first].owner;
    candidate.first_row = static_cast<uint32_t>(first);
    candidate.row_cnt = RankNames(
        plan, *sweep, absl::MakeSpan(rows).subspan(first, last - first));
    candidate.requests = requests;
    candidate.clone = rows[first].clone && !rows[first].plain;
    candidates.list.push_back(candidate);
  }
  return candidates;
}

}  // namespace ksweep
