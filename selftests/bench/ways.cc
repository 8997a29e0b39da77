#include "selftests/bench/ways.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <tuple>

#include "ksweep/kernel_files.h"
#include "lib/resolve/candidates.h"
#include "lib/resolve/sweep.h"
#include "lib/resolve/sweep_plan.h"
#include "lib/source/list_file.h"

namespace ksweep::bench {
namespace {

void SweepOrDie(const SweepPlan& plan, const std::string& path,
                SweepResult* result) {
  KernelFiles files;
  files.Override(KernelFile::kKallsyms, path);
  absl::StatusOr<ListFile> kallsyms =
      ListFile::Open(files, KernelFile::kKallsyms);
  absl::Status status = kallsyms.status();
  if (status.ok()) status = Sweep(plan, SweepOptions(), &*kallsyms, result);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(2);
  }
}

void TakeAnswer(const SweepResult& result, std::vector<Found>* answer) {
  for (const SymbolRow& row : result.rows) {
    for (uint32_t request : result.sets.Get(row.requests)) {
      answer->push_back({request, true, row.addr});
    }
  }
  for (uint32_t i = 0; i < result.seen.size(); ++i) {
    if (result.seen[i].other) answer->push_back({i, false, 0});
  }
}

void RunSweep(const SweepPlan& plan, const std::string& path,
              std::vector<Found>* answer) {
  SweepResult result;
  SweepOrDie(plan, path, &result);
  if (answer != nullptr) TakeAnswer(result, answer);
}

void RunToCandidates(const Question& question, std::vector<Found>* answer) {
  const SweepPlan plan(question.requests);
  SweepResult result;
  SweepOrDie(plan, question.source->path, &result);
  if (answer != nullptr) TakeAnswer(result, answer);
  MakeCandidates(plan, /*clones=*/false, &result);
}

Way KsweepWay(const Question& question) {
  return {
      "ksweep", Way::Role::kKsweep, [&question](std::vector<Found>* answer) {
        RunSweep(SweepPlan(question.requests), question.source->path, answer);
      }};
}

Way PlanOnlyWay(const Question& question) {
  return {"  its plan alone", Way::Role::kPart,
          [&question](std::vector<Found>*) {
            const SweepPlan plan(question.requests);
          },
          /*answers=*/false, /*reads=*/false};
}

Way SweepOnlyWay(const Question& question) {
  const auto plan = std::make_shared<const SweepPlan>(question.requests);
  return {"  its sweep alone", Way::Role::kPart,
          [&question, plan](std::vector<Found>* answer) {
            RunSweep(*plan, question.source->path, answer);
          }};
}

Way CandidatesWay(const Question& question) {
  return {"  with candidates", Way::Role::kPart,
          [&question](std::vector<Found>* answer) {
            RunToCandidates(question, answer);
          }};
}

Way ReferenceWay(std::string label, FindFn find, const Question& question) {
  const auto wanted =
      std::make_shared<std::vector<std::string_view>>(question.views());
  return {std::move(label), Way::Role::kOther,
          [&question, find, wanted](std::vector<Found>* answer) {
            std::vector<Found> found = find(*wanted, question.source->path);
            if (answer != nullptr) *answer = std::move(found);
          }};
}

Way FloorWay(std::string label, FindFn find, const Question& question,
             Way::Role role) {
  Way way = ReferenceWay(std::move(label), find, question);
  way.role = role;
  way.answers = false;
  return way;
}

}  // namespace

std::vector<Way> WaysFor(const Question& question) {
  std::vector<Way> ways = {
      FloorWay("read only", ReadOnly, question, Way::Role::kFloor),
      KsweepWay(question),
      PlanOnlyWay(question),
      SweepOnlyWay(question),
      CandidatesWay(question),
      FloorWay("read and split", ReadAndSplit, question, Way::Role::kOther),
  };
  if (question.globs) {
    ways.push_back(ReferenceWay("every glob", FindByEveryGlob, question));
    return ways;
  }
  ways.push_back(ReferenceWay("binary search", FindByBinarySearch, question));
  ways.push_back(ReferenceWay("flat_hash_map", FindByFlatHashMap, question));
  ways.push_back(ReferenceWay("unordered_map", FindByUnorderedMap, question));
  ways.push_back(ReferenceWay("map", FindByMap, question));
  ways.push_back(ReferenceWay("loaded table", FindInLoadedTable, question));
  constexpr size_t kMostRescans = 1;
  if (question.wanted.size() <= kMostRescans) {
    ways.push_back(ReferenceWay("rescan", FindByRescan, question));
  }
  return ways;
}

void Normalize(std::vector<Found>* answer) {
  for (Found& found : *answer) {
    if (!found.function) found.addr = 0;
  }
  const auto key = [](const Found& f) {
    return std::make_tuple(f.wanted, f.function, f.addr);
  };
  std::sort(answer->begin(), answer->end(),
            [&key](const Found& a, const Found& b) { return key(a) < key(b); });
  // A data symbol can repeat; a function that is listed twice counts twice.
  answer->erase(std::unique(answer->begin(), answer->end(),
                            [&key](const Found& a, const Found& b) {
                              return !a.function && key(a) == key(b);
                            }),
                answer->end());
}

bool SameAnswer(const std::vector<Found>& a, const std::vector<Found>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Found& x, const Found& y) {
                      return x.wanted == y.wanted && x.function == y.function &&
                             x.addr == y.addr;
                    });
}

size_t AnswerBytes(const Question& question) {
  const SweepPlan plan(question.requests);
  SweepResult result;
  SweepOrDie(plan, question.source->path, &result);
  return result.rows.size() * sizeof(SymbolRow) + result.text.bytes();
}

}  // namespace ksweep::bench
