// Command lines of the examples: flags, defined with ABSL_FLAG, and requests in
// any order.
//
// absl::ParseCommandLine() exits with 1 for a wrong flag and lists Abseil's own
// flags; here wrong usage is 2, and --help is about this program.

#ifndef KSWEEP_EXAMPLES_COMMON_FLAGS_H_
#define KSWEEP_EXAMPLES_COMMON_FLAGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace examples {

struct CommandLine {
  std::vector<std::string> requests;
  bool help = false;
  bool version = false;
};

// Sets the flags that `args`, the command line without the program's name,
// gives, and returns the rest:
//
//   --name=value  --name value   any flag; `name` with `_` or `-`
//   --name  --noname             a bool
//   -name                        the same as --name; -v is --verbose, -o
//                                --output, -p --pid, -i --interval
//   -                            a request
//   --                           only requests from here on
//
// InvalidArgument names the flag and the remedy. Flags before it stay set.
absl::StatusOr<CommandLine> ParseFlags(absl::Span<const std::string> args);

// `usage`, then the flags of this program with the values that they have, so
// that a program can set defaults of its own before.
std::string HelpText(std::string_view usage);

// The requests of the command line. Answers --help and --version, and wrong
// usage, by ending the program. `name` is a literal.
std::vector<std::string> ParseFlagsOrExit(int argc, char** argv,
                                          std::string_view name,
                                          std::string_view usage);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_FLAGS_H_
