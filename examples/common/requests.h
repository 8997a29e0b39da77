// The flags that all examples share, and what they say: which functions, of
// which kernel, to be attached how.

#ifndef KSWEEP_EXAMPLES_COMMON_REQUESTS_H_
#define KSWEEP_EXAMPLES_COMMON_REQUESTS_H_

#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ksweep/kernel_files.h"
#include "ksweep/request.h"
#include "ksweep/resolve.h"

ABSL_DECLARE_FLAG(std::string, root);
ABSL_DECLARE_FLAG(std::vector<std::string>, kind);
ABSL_DECLARE_FLAG(bool, clones);
ABSL_DECLARE_FLAG(bool, report_missing);
ABSL_DECLARE_FLAG(uint64_t, max_targets);
ABSL_DECLARE_FLAG(bool, default_deny);
ABSL_DECLARE_FLAG(std::string, requests);
ABSL_DECLARE_FLAG(bool, json);
ABSL_DECLARE_FLAG(bool, verbose);

namespace examples {

// --kind as it is by itself: what the program does best on the kernel.
// Resolve() is asked for kprobe.multi.
inline constexpr char kAutoKind[] = "auto";

// What a program asks Resolve().
struct Query {
  std::vector<ksweep::Request> requests;
  ksweep::KernelFiles files;
  // Missing names are reported, so that a failure can still show what was
  // found; see CheckResolution().
  ksweep::ResolveOptions options;
};

// From the flags, and the requests of the command line. InvalidArgument, for
// exit code 2, names the flag or the request and what is wrong with it.
absl::StatusOr<Query> ReadQuery(const std::vector<std::string>& requests);

// Ok unless Resolve() failed, or exact requests have no target and
// --report_missing is not given.
absl::Status CheckResolution(
    const absl::StatusOr<ksweep::Resolution>& resolution);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_REQUESTS_H_
