#include "lib/attach/explain.h"

#include <cerrno>
#include <string>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

// EINVAL is also what a kernel says to an attach type that it does not know.
bool MayMeanNoSuchKind(int err) {
  return err == EINVAL || err == EOPNOTSUPP || err == kKernelEnotsupp;
}

}  // namespace

absl::Status ExplainFailure(const absl::Status& status, Kind kind,
                            Features& features) {
  const int err = ErrnoOf(status);
  if (!MayMeanNoSuchKind(err)) return status;
  features.Remember(kind, err);
  const Feature feature = features.Find(kind);
  if (feature.support != Support::kNo) return status;
  return ErrnoStatus(err, absl::StatusCode::kUnimplemented,
                     absl::StrFormat("the kernel cannot attach %s (%s): %s",
                                     Av(KindName(kind)), feature.why,
                                     std::string(status.message())));
}

}  // namespace ksweep
