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

enum class Woken { kTime, kSignal, kInput };

// The same without progress, and returns also as soon as `fd` has something to
// read or is at its end. A negative one has never.
Woken WaitForEndOrInput(double seconds, int fd);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_END_SIGNALS_H_
