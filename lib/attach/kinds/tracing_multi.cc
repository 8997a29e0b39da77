#include "lib/attach/kinds/tracing_multi.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/attach/kinds/errno_hints.h"
#include "lib/attach/programs/program_image.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

// What bpf_tracing_multi_attach() (kernel/trace/bpf_trace.c),
// bpf_trampoline_multi_attach() (kernel/bpf/trampoline.c) and
// bpf_check_attach_btf_id_multi() (kernel/bpf/verifier.c) return in Linux 7.3,
// and why.
constexpr ErrnoHint kErrnoHints[] = {
    {EOPNOTSUPP,
     "the kernel has no direct calls from ftrace on this architecture or in "
     "this configuration, or at its return a function gives more than 8 bytes",
     "it returns more than the 8 bytes that a program at its return can have"},
    {EINVAL,
     "refused without a reason: a BTF id that is no function's, or is there "
     "twice; a function that the kernel lets no trampoline on; a program that "
     "was not loaded for this kind; or a kernel without tracing_multi links",
     "the kernel lets no trampoline on it (one of a few functions on its own "
     "path; at the return, one that never returns), its arguments or its "
     "result are of a form that trampolines do not pass, something else has "
     "one there, or the BTF id is not a function's any more: resolve again"},
    {ENOENT,
     "a function is not one that ftrace can trace; the resolution may be older "
     "than the last module load, or of another kernel: resolve again",
     "not a function that ftrace can trace, or another one of the same name "
     "comes first and is not; or its module is gone: resolve again"},
    {E2BIG,
     "a function has as many BPF programs as the kernel allows for one, or the "
     "link is for more functions than it takes",
     "it has as many BPF programs as the kernel allows for one function (38 on "
     "most; a session counts twice); detach others"},
    {EBUSY,
     "a function has this very program already, by another link, or a program "
     "of type ext; detach it there, or load a second program",
     "it has this very program already, by another link, or a program of type "
     "ext"},
    {ENOMEM,
     "the kernel got no memory: a function takes about 2 kB; see "
     "AttachOptions::max_per_link for the size of one link"},
    {EPERM,
     "not permitted; needs CAP_BPF and CAP_PERFMON, or root, a kernel that is "
     "not locked down (/sys/kernel/security/lockdown), and without CAP_BPF "
     "room below net.core.bpf_jit_limit"},
};

std::string Describe(const TracingMultiCall& call) {
  std::string text =
      absl::StrFormat("%s link to %d function%s", Av(KindName(call.abi.kind)),
                      call.ids.size(), call.ids.size() == 1 ? "" : "s");
  if (call.module.empty()) return text;
  return text + absl::StrFormat(" of %s", Av(call.module));
}

absl::Status CannotReload(const LinkOwner& owner) {
  const std::string what =
      owner.module.empty()
          ? std::string("the second cookie of a function")
          : absl::StrFormat("functions of module %s", Av(owner.module));
  return absl::FailedPreconditionError(absl::StrFormat(
      "the program has to be loaded once more for %s, and only its descriptor "
      "is known; use Attach() with the bpf_program",
      what));
}

}  // namespace

absl::StatusOr<Link> CreateTracingMultiLink(BpfSys& sys,
                                            const TracingMultiCall& call) {
  TracingMultiLinkAttr attr;
  attr.prog_fd = static_cast<uint32_t>(call.prog_fd);
  attr.attach_type = call.abi.attach_type;
  attr.ids = reinterpret_cast<uintptr_t>(call.ids.data());
  attr.cookies = reinterpret_cast<uintptr_t>(call.cookies.data());
  attr.cnt = static_cast<uint32_t>(call.ids.size());
  const int result = sys.Bpf(kBpfLinkCreate, &attr, sizeof(attr));
  if (result < 0) return TracingMultiError(-result, call);
  return Link(result);
}

absl::Status TracingMultiError(int err, const TracingMultiCall& call) {
  return HintedError(err, Describe(call), kErrnoHints);
}

absl::StatusOr<UniqueFd> TracingMultiFactory::LoadFor(const LinkOwner& owner) {
  if (program_.image == nullptr) return CannotReload(owner);
  const absl::Status status = CheckReloadable(*program_.image);
  if (!status.ok()) return status;
  TrampolineTarget target;
  if (!owner.module.empty()) {
    const absl::StatusOr<int> object = objects_.Open(owner.module);
    if (!object.ok()) return object.status();
    target.btf_obj_fd = static_cast<uint32_t>(*object);
  }
  return LoadImage(sys_, *program_.image, target);
}

absl::Status TracingMultiFactory::Open(const LinkOwner& owner) {
  module_ = owner.module;
  prog_fd_ = program_.fd;
  if (owner.module.empty() && owner.rank == 0) return absl::OkStatus();
  UniqueFd& loaded = loaded_[{module_, owner.rank}];
  if (!loaded.valid()) {
    absl::StatusOr<UniqueFd> fd = LoadFor(owner);
    if (!fd.ok()) return fd.status();
    loaded = *std::move(fd);
  }
  prog_fd_ = loaded.get();
  return absl::OkStatus();
}

absl::StatusOr<Link> TracingMultiFactory::MakeLink(
    absl::Span<const AttachPoint> points) {
  ids_.clear();
  cookies_.clear();
  for (const AttachPoint& point : points) {
    ids_.push_back(point.btf_id);
    cookies_.push_back(point.cookie);
  }
  TracingMultiCall call;
  call.abi = abi_;
  call.prog_fd = prog_fd_;
  call.module = module_;
  call.ids = ids_;
  call.cookies = cookies_;
  return CreateTracingMultiLink(sys_, call);
}

Fault TracingMultiFactory::FaultOf(int err) const {
  if (err == ENOMEM) return Fault::kMemory;
  const ErrnoHint* hint = FindErrnoHint(kErrnoHints, err);
  const bool about_function = hint != nullptr && hint->function != nullptr;
  return about_function ? Fault::kTarget : Fault::kCall;
}

std::string TracingMultiFactory::FunctionRefusal(int err) const {
  const ErrnoHint* hint = FindErrnoHint(kErrnoHints, err);
  if (hint == nullptr || hint->function == nullptr) return ErrnoText(err);
  return hint->function;
}

}  // namespace ksweep
