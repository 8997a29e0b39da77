#include "lib/attach/explain.h"

#include <cerrno>

#include "absl/strings/cord.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

// EINVAL is also what a kernel says to an attach type that it does not know.
bool MayMeanNoSuchKind(int err) {
  return err == EINVAL || err == EOPNOTSUPP || err == kKernelEnotsupp;
}

// The same error with another code.
absl::Status WithCode(const absl::Status& status, absl::StatusCode code) {
  absl::Status recoded(code, status.message());
  status.ForEachPayload(
      [&recoded](absl::string_view type, const absl::Cord& payload) {
        recoded.SetPayload(type, payload);
      });
  return recoded;
}

}  // namespace

absl::Status ExplainFailure(const absl::Status& status, Kind kind,
                            Features& features) {
  const int err = ErrnoOf(status);
  if (!MayMeanNoSuchKind(err)) return status;
  // Asked first: what it answers says more than the errno that is known.
  Feature feature = features.Find(kind);
  if (feature.support != Support::kNo) {
    features.Remember(kind, err);
    feature = features.Find(kind);
  }
  if (feature.support != Support::kNo) return status;
  return Annotate(WithCode(status, absl::StatusCode::kUnimplemented),
                  absl::StrFormat("the kernel cannot attach %s (%s)",
                                  Av(KindName(kind)), feature.why));
}

}  // namespace ksweep
