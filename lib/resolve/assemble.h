// The last step: candidates become targets, omissions and unmatched requests.

#ifndef KSWEEP_LIB_RESOLVE_ASSEMBLE_H_
#define KSWEEP_LIB_RESOLVE_ASSEMBLE_H_

#include "ksweep/resolve.h"
#include "lib/resolve/candidates.h"
#include "lib/resolve/judge.h"
#include "lib/resolve/resolution_builder.h"
#include "lib/resolve/sweep.h"

namespace ksweep {

// Fills in all of `builder` but its statistics.
void Assemble(const SweepPlan& plan, const BtfPlan& btf,
              const SweepResult& sweep, const Candidates& candidates,
              const Judge& judge, KindSet kinds, ResolutionBuilder* builder);

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_ASSEMBLE_H_
