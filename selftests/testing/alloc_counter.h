// Counts what operator new gives out.

#ifndef KSWEEP_SELFTESTS_TESTING_ALLOC_COUNTER_H_
#define KSWEEP_SELFTESTS_TESTING_ALLOC_COUNTER_H_

#include <cstdint>

namespace ksweep::testing {

struct AllocStats {
  int64_t cnt = 0;         // calls
  int64_t live_bytes = 0;  // not given back
  int64_t peak_bytes = 0;  // the most there was at a time
};

// Calls and bytes of this program since the last ResetAllocStats(). Programs
// that link this file have operator new replaced.
AllocStats GetAllocStats();
void ResetAllocStats();

}  // namespace ksweep::testing

#endif  // KSWEEP_SELFTESTS_TESTING_ALLOC_COUNTER_H_
