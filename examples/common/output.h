// What the examples print: the result to stdout, everything else to stderr.

#ifndef KSWEEP_EXAMPLES_COMMON_OUTPUT_H_
#define KSWEEP_EXAMPLES_COMMON_OUTPUT_H_

#include <string_view>

#include "absl/status/status.h"

namespace examples {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// The name that messages begin with; a literal. Default: "ksweep".
void SetProgramName(std::string_view name);
std::string_view ProgramName();

// Writes all of `text` to stdout. Says on stderr if that fails, for example
// because the reader is gone or the disk is full, and returns false.
bool WriteOut(std::string_view text);

// Writes to stderr; nothing can be done if that fails.
void WriteErr(std::string_view text);

// "resolve: MESSAGE" to stderr.
void PrintMessage(std::string_view message);

// The same for a failure.
void PrintError(const absl::Status& status);

// The same for wrong flags and requests; returns the exit code for them.
int WrongUsage(const absl::Status& status);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_OUTPUT_H_
