#include "lib/attach/kinds/errno_hints.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

// Never about a function or the kind.
constexpr ErrnoHint kCommonHints[] = {
    {EACCES, "not permitted; a security module refuses bpf(2) to this process"},
    {ENODEV, "ftrace has shut itself down after an error (see dmesg); reboot",
     nullptr, absl::StatusCode::kFailedPrecondition},
    {EBADF, "the program's descriptor is not open", nullptr,
     absl::StatusCode::kInvalidArgument},
    {EMFILE, "out of descriptors; raise RLIMIT_NOFILE (ulimit -n)"},
    {ENFILE, "the system is out of descriptors; raise fs.file-max"},
    {ENOSYS, "the kernel has no bpf(2) (CONFIG_BPF_SYSCALL)"},
};

const ErrnoHint* FindIn(absl::Span<const ErrnoHint> table, int err) {
  const auto place =
      std::find_if(table.begin(), table.end(),
                   [err](const ErrnoHint& hint) { return hint.err == err; });
  return place == table.end() ? nullptr : &*place;
}

}  // namespace

const ErrnoHint* FindErrnoHint(absl::Span<const ErrnoHint> table, int err) {
  const ErrnoHint* hint = FindIn(table, err);
  return hint != nullptr ? hint : FindIn(kCommonHints, err);
}

absl::Status HintedError(int err, std::string_view what,
                         absl::Span<const ErrnoHint> table) {
  const ErrnoHint* hint = FindErrnoHint(table, err);
  if (hint == nullptr) return ErrnoStatus(err, what);
  return ErrnoStatus(err, hint->code.value_or(CodeOfErrno(err)),
                     absl::StrFormat("%s: %s", Av(what), hint->text));
}

}  // namespace ksweep
