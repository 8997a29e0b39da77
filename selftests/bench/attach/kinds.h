// Kinds that are attached together: one, or a pair for entry and return.

#ifndef KSWEEP_SELFTESTS_BENCH_ATTACH_KINDS_H_
#define KSWEEP_SELFTESTS_BENCH_ATTACH_KINDS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ksweep/attach.h"
#include "ksweep/kind.h"

namespace ksweep::bench {

using Kinds = absl::Span<const Kind>;

inline constexpr Kind kEntry[] = {Kind::kKprobeMulti};
inline constexpr Kind kReturn[] = {Kind::kKretprobeMulti};
inline constexpr Kind kPair[] = {Kind::kKprobeMulti, Kind::kKretprobeMulti};
inline constexpr Kind kSession[] = {Kind::kKprobeSession};
inline constexpr Kind kSingleEntry[] = {Kind::kKprobe};
inline constexpr Kind kSingleReturn[] = {Kind::kKretprobe};

// "kprobe.multi and kretprobe.multi".
std::string KindsText(Kinds kinds);

KindSet SetOf(Kinds kinds);

// `prog` for each of the kinds, which need the same program.
std::vector<KindProgram> ProgramsFor(Kinds kinds, const bpf_program* prog);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_ATTACH_KINDS_H_
