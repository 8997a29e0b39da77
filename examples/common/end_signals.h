// Ctrl-C and kill end the waiting, and not the program: it still has to detach
// and to print its result.

#ifndef KSWEEP_EXAMPLES_COMMON_END_SIGNALS_H_
#define KSWEEP_EXAMPLES_COMMON_END_SIGNALS_H_

#include "common/progress.h"

namespace examples {

// From here on SIGINT and SIGTERM wait for WaitForEnd().
void HoldEndSignals();

// One of the held signals came.
bool EndSignalPending();

// Returns after `seconds`, or as soon as one of the held signals comes: true
// then.
bool WaitForEnd(double seconds, Progress& progress);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_END_SIGNALS_H_
