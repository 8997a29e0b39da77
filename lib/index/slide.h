// Where the running kernel is, compared with where an index was built.

#ifndef KSWEEP_LIB_INDEX_SLIDE_H_
#define KSWEEP_LIB_INDEX_SLIDE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ksweep/kernel_files.h"
#include "lib/index/index_data.h"

namespace ksweep {

// What to add to the addresses of `data`'s core, which was not moved yet, to
// get those of the kernel of `files`. Reads kallsyms up to some symbols behind
// `_stext`, if the build ids are known and equal, else all of it; every symbol
// that it compares has to be where the slide says.
//
// FailedPrecondition if it is another kernel, or shows no addresses.
absl::StatusOr<uint64_t> FindSlide(const IndexData& data,
                                   const KernelFiles& files);

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_SLIDE_H_
