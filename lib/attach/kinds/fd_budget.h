// Whether the process may open as many descriptors as an attachment needs,
// found out before the first is opened.

#ifndef KSWEEP_LIB_ATTACH_KINDS_FD_BUDGET_H_
#define KSWEEP_LIB_ATTACH_KINDS_FD_BUDGET_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "lib/base/perf_sys.h"

namespace ksweep {

// Descriptors that are open for a moment only while the others are made: a
// perf event before its link holds it, a file that progress is written to.
inline constexpr uint64_t kFdsToWorkWith = 4;

enum class RaiseLimit : uint8_t { kNo, kYes };

// Ok if `cnt` more descriptors, which stay open, and kFdsToWorkWith fit below
// RLIMIT_NOFILE; `what` needs them, as in "kprobe on 3000 functions". With
// RaiseLimit::kYes the soft limit is raised as far as needed, never above the
// hard one, and stays raised: select(2) cannot be used with descriptors above
// 1023, which is why it takes a caller's word.
//
// ResourceExhausted (EMFILE) with need and have; nothing was changed then. If
// what is open or the limit cannot be read, that is no reason to refuse: the
// kernel will.
absl::Status ReserveFds(PerfSys& sys, uint64_t cnt, std::string_view what,
                        RaiseLimit raise);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_KINDS_FD_BUDGET_H_
