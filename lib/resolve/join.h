// The filter list joined to the candidates: which of them, instance by
// instance, the kernel can hook.

#ifndef KSWEEP_LIB_RESOLVE_JOIN_H_
#define KSWEEP_LIB_RESOLVE_JOIN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ksweep/kernel_files.h"
#include "ksweep/resolve.h"
#include "lib/resolve/candidates.h"
#include "lib/resolve/sweep.h"
#include "lib/source/list_file.h"

namespace ksweep {

struct JoinInput {
  const KernelFiles& files;
  const SweepPlan& plan;
  ListFile* kallsyms;  // for the rare further pass
};

struct JoinOutcome {
  ListState list = ListState::kMissing;
  // Why there is no list, if there is none.
  absl::Status missing;
  // The targets have to be attached by name.
  bool by_name = false;
  std::vector<Unjoined> unjoined;  // views into SweepResult::text
  std::vector<std::string> notes;
  std::vector<FileStats> files;
  int64_t read_ns = 0;
};

// Sets Candidate::traceable of every candidate; fills in addresses that
// kallsyms hides and the list shows; gives address requests to the candidates
// that ftrace hooks at that address. One open and one pass over one list.
// Fails only if a list that was opened cannot be read to its end.
absl::Status JoinFilterList(const JoinInput& input, SweepResult* sweep,
                            Candidates* candidates, JoinOutcome* outcome);

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_JOIN_H_
