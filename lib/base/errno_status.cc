#include "lib/base/errno_status.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"

namespace ksweep {
namespace {

constexpr char kErrnoPayload[] = "type.ksweep/errno";

struct ErrnoMeaning {
  int err;
  absl::StatusCode code;
};

// EINVAL has many meanings and stays what it is; who knows more says so with
// the form of ErrnoStatus() that takes a code.
constexpr ErrnoMeaning kMeanings[] = {
    {EINVAL, absl::StatusCode::kInvalidArgument},
    {E2BIG, absl::StatusCode::kInvalidArgument},
    {ENOENT, absl::StatusCode::kNotFound},
    {ESRCH, absl::StatusCode::kNotFound},
    {ENODEV, absl::StatusCode::kNotFound},
    {EADDRNOTAVAIL, absl::StatusCode::kFailedPrecondition},
    {EILSEQ, absl::StatusCode::kInvalidArgument},
    {EPERM, absl::StatusCode::kPermissionDenied},
    {EACCES, absl::StatusCode::kPermissionDenied},
    {EOPNOTSUPP, absl::StatusCode::kUnimplemented},
    {ENOSYS, absl::StatusCode::kUnimplemented},
    {kKernelEnotsupp, absl::StatusCode::kUnimplemented},
    {ENOMEM, absl::StatusCode::kResourceExhausted},
    {ENOSPC, absl::StatusCode::kResourceExhausted},
    {EMFILE, absl::StatusCode::kResourceExhausted},
    {ENFILE, absl::StatusCode::kResourceExhausted},
    {EBUSY, absl::StatusCode::kUnavailable},
    {EAGAIN, absl::StatusCode::kUnavailable},
    {EINTR, absl::StatusCode::kUnavailable},
    {EEXIST, absl::StatusCode::kAlreadyExists},
    {EFAULT, absl::StatusCode::kInternal},
};

}  // namespace

std::string ErrnoText(int err) {
  if (err == kKernelEnotsupp) return "Operation not supported (524)";
  char buffer[128];
  return strerror_r(err, buffer, sizeof(buffer));
}

absl::StatusCode CodeOfErrno(int err) {
  for (const ErrnoMeaning& meaning : kMeanings) {
    if (meaning.err == err) return meaning.code;
  }
  return absl::StatusCode::kUnknown;
}

absl::Status ErrnoStatus(int err, std::string_view message) {
  return ErrnoStatus(err, CodeOfErrno(err), message);
}

absl::Status ErrnoStatus(int err, absl::StatusCode code,
                         std::string_view message) {
  absl::Status status(code,
                      absl::StrFormat("%s: %s", Av(message), ErrnoText(err)));
  status.SetPayload(kErrnoPayload, absl::Cord(absl::StrFormat("%d", err)));
  return status;
}

absl::Status Annotate(const absl::Status& status, std::string_view text) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(),
                         absl::StrFormat("%s: %s", Av(text), status.message()));
  status.ForEachPayload(
      [&annotated](absl::string_view url, const absl::Cord& payload) {
        annotated.SetPayload(url, payload);
      });
  return annotated;
}

int ErrnoOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kErrnoPayload);
  if (!payload.has_value()) return 0;
  const std::string text(*payload);
  int err = 0;
  std::from_chars(text.data(), text.data() + text.size(), err);
  return err;
}

}  // namespace ksweep
