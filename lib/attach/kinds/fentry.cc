#include "lib/attach/kinds/fentry.h"

#include <cerrno>

#include "absl/strings/str_format.h"
#include "lib/attach/kinds/fd_budget.h"
#include "lib/attach/programs/program_image.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

struct ErrnoHint {
  int err;
  bool about_function;
  const char* text;
};

// What loading a program for a function (bpf_check_attach_target() in
// kernel/bpf/verifier.c) and linking it (bpf_tracing_prog_attach() in
// kernel/bpf/syscall.c, __bpf_trampoline_link_prog() in
// kernel/bpf/trampoline.c) return, read up to Linux 7.3, and why.
constexpr ErrnoHint kErrnoHints[] = {
    {EINVAL, true,
     "the kernel lets no trampoline on it, its arguments or its result are of "
     "a form that trampolines do not pass, or the program reads an argument "
     "that it does not have"},
    {EACCES, true,
     "the kernel's verifier does not take the program for this function, as "
     "one that reads an argument that it does not have"},
    {ENOENT, true,
     "the kernel finds no address for it; the resolution may be older than the "
     "last module load, or of another kernel: resolve again"},
    {ESRCH, true, "the kernel does not know it"},
    {EBUSY, true,
     "something else has patched the function, or it has a program of type "
     "ext"},
    {E2BIG, true,
     "it has as many BPF programs as the kernel allows for one function; "
     "detach others"},
    {EOPNOTSUPP, true,
     "the kernel has no trampoline for it: on this architecture none at all, "
     "or "
     "not for its arguments"},
    {kKernelEnotsupp, true,
     "the kernel has no trampoline for it: on this architecture none at all, "
     "not for its arguments, or its JIT has no room (net.core.bpf_jit_limit)"},
    {ENODEV, true, "ftrace does not trace it, or has shut itself down"},
    {ENOMEM, false,
     "the kernel got no memory: a function takes about 10 kB, and code of "
     "programs and trampolines has its own limit, net.core.bpf_jit_limit"},
    {EPERM, false,
     "not permitted; needs CAP_BPF and CAP_PERFMON, or root, and without "
     "CAP_BPF room below net.core.bpf_jit_limit"},
    {EMFILE, false, "out of descriptors; raise RLIMIT_NOFILE (ulimit -n)"},
    {ENFILE, false, "the system is out of descriptors; raise fs.file-max"},
    {ENOSYS, false, "the kernel has no bpf(2) (CONFIG_BPF_SYSCALL)"},
};

const ErrnoHint* FindHint(int err) {
  for (const ErrnoHint& hint : kErrnoHints) {
    if (hint.err == err) return &hint;
  }
  return nullptr;
}

absl::Status LinkError(int err, Kind kind) {
  const ErrnoHint* hint = FindHint(err);
  const std::string what = absl::StrFormat("%s link", Av(KindName(kind)));
  if (hint == nullptr) return ErrnoStatus(err, what);
  return ErrnoStatus(err, absl::StrFormat("%s: %s", what, hint->text));
}

absl::Status WithHint(const absl::Status& status) {
  const ErrnoHint* hint = FindHint(ErrnoOf(status));
  return hint == nullptr ? status : Annotate(status, hint->text);
}

}  // namespace

absl::Status FentryFactory::Reserve(size_t cnt) {
  const std::string what = absl::StrFormat("%s on %d functions, one by one",
                                           Av(KindName(abi_.kind)), cnt);
  const RaiseLimit raise =
      options_.raise_fd_limit ? RaiseLimit::kYes : RaiseLimit::kNo;
  return ReserveFds(limits_, cnt + options_.threads, what, raise);
}

absl::Status FentryFactory::Open(const LinkOwner& owner) {
  if (program_.image == nullptr) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "a program of kind %s is loaded once more for each function, and only "
        "its descriptor is known; use Attach() with the bpf_program",
        Av(KindName(abi_.kind))));
  }
  const absl::Status status = CheckReloadable(*program_.image);
  if (!status.ok()) return status;
  btf_obj_fd_ = 0;
  if (owner.module.empty()) return absl::OkStatus();
  const absl::StatusOr<int> object = objects_.Open(owner.module);
  if (!object.ok()) return object.status();
  btf_obj_fd_ = static_cast<uint32_t>(*object);
  return absl::OkStatus();
}

absl::StatusOr<Link> FentryFactory::MakeLink(
    absl::Span<const AttachPoint> points) {
  if (points.size() != 1) {
    return absl::InternalError(
        absl::StrFormat("a link of kind %s has one function, not %d",
                        Av(KindName(abi_.kind)), points.size()));
  }
  const AttachPoint& point = points.front();
  // Closed when the link holds it.
  const absl::StatusOr<UniqueFd> program =
      LoadImage(sys_, *program_.image, {point.btf_id, btf_obj_fd_});
  if (!program.ok()) return WithHint(program.status());
  TracingLinkAttr attr;
  attr.prog_fd = static_cast<uint32_t>(program->get());
  attr.attach_type = abi_.attach_type;
  attr.cookie = point.cookie;
  const int result = sys_.Bpf(kBpfLinkCreate, &attr, sizeof(attr));
  if (result < 0) return LinkError(-result, abi_.kind);
  return Link(result);
}

Fault FentryFactory::FaultOf(int err) const {
  const ErrnoHint* hint = FindHint(err);
  return hint != nullptr && hint->about_function ? Fault::kTarget
                                                 : Fault::kCall;
}

std::string FentryFactory::FunctionRefusal(int err) const {
  const ErrnoHint* hint = FindHint(err);
  return hint == nullptr ? ErrnoText(err) : hint->text;
}

}  // namespace ksweep
