#include "ksweep/session.h"

#include <bpf/btf.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/strings/str_format.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

constexpr const char* kSessionCalls[] = {"bpf_session_is_return",
                                         "bpf_session_cookie"};

absl::Status UnknownForm(const char* call) {
  return absl::UnimplementedError(absl::StrFormat(
      "the kernel's %s() has a form that this version does not know; it knows "
      "(void) and (void *ctx)",
      call));
}

absl::StatusOr<SessionAbi> AbiOfCall(const btf& kernel_btf, const char* call) {
  const __s32 id = btf__find_by_name_kind(&kernel_btf, call, BTF_KIND_FUNC);
  if (id < 0) return SessionAbi::kNone;
  const btf_type* func = btf__type_by_id(&kernel_btf, static_cast<__u32>(id));
  const btf_type* proto = btf__type_by_id(&kernel_btf, func->type);
  if (proto == nullptr || !btf_is_func_proto(proto)) return UnknownForm(call);
  switch (btf_vlen(proto)) {
    case 0:
      return SessionAbi::kVoid;
    case 1:
      return SessionAbi::kCtx;
    default:
      return UnknownForm(call);
  }
}

absl::StatusOr<SessionAbi> ReadRunningKernel() {
  struct Free {
    void operator()(btf* loaded) const { btf__free(loaded); }
  };
  const std::unique_ptr<btf, Free> kernel_btf(btf__load_vmlinux_btf());
  const int err = errno;
  if (kernel_btf != nullptr) return SessionAbiOf(*kernel_btf);
  return ErrnoStatus(
      err,
      "cannot read the kernel's BTF, which tells the form of its session "
      "calls (/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF)");
}

}  // namespace

absl::StatusOr<SessionAbi> SessionAbiOf(const btf& kernel_btf) {
  std::optional<SessionAbi> first;
  for (const char* call : kSessionCalls) {
    absl::StatusOr<SessionAbi> abi = AbiOfCall(kernel_btf, call);
    if (!abi.ok()) return abi.status();
    // An object has one form for all calls.
    if (first.has_value() && *first != *abi) return UnknownForm(call);
    first = *abi;
  }
  return *first;
}

absl::StatusOr<SessionAbi> DetectSessionAbi() {
  static std::mutex mutex;
  static std::optional<SessionAbi> known;
  const std::lock_guard<std::mutex> lock(mutex);
  if (known.has_value()) return *known;
  absl::StatusOr<SessionAbi> abi = ReadRunningKernel();
  if (abi.ok()) known = *abi;
  return abi;
}

absl::StatusOr<absl::Span<const char>> PickSessionObject(
    SessionAbi abi, absl::Span<const char> void_form,
    absl::Span<const char> ctx_form) {
  switch (abi) {
    case SessionAbi::kVoid:
      return void_form;
    case SessionAbi::kCtx:
      return ctx_form;
    case SessionAbi::kNone:
      break;
  }
  return absl::UnimplementedError(
      "this kernel has no session programs: its BTF has no "
      "bpf_session_is_return(); they need Linux 6.10 and CONFIG_FPROBE. Use a "
      "program for kprobe.multi and one for kretprobe.multi, or kprobes");
}

absl::StatusOr<absl::Span<const char>> PickSessionObject(
    absl::Span<const char> void_form, absl::Span<const char> ctx_form) {
  absl::StatusOr<SessionAbi> abi = DetectSessionAbi();
  if (!abi.ok()) return abi.status();
  return PickSessionObject(*abi, void_form, ctx_form);
}

absl::Status SessionSkeletonError(int err) {
  return ErrnoStatus(err, "opening the session program's BPF object");
}

}  // namespace ksweep
