#include "lib/attach/kinds/perf_kprobe.h"

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/attach/features/probe_program.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

struct Hint {
  int err;
  bool about_function;
  const char* text;
  // Where the general table means something else.
  std::optional<absl::StatusCode> code = std::nullopt;
};

// What perf_event_open() returns for the kprobe PMU: the checks of
// kernel/events/core.c, perf_kprobe_event_init(), create_local_trace_kprobe()
// and register_kprobe(), read up to Linux 7.3 and tried on 6.1, 6.12 and 7.3.
constexpr Hint kOpenHints[] = {
    {EINVAL, true,
     "the kernel does not let it be probed: on the kprobe blacklist "
     "(/sys/kernel/debug/kprobes/blacklist), freed init code, or no kernel "
     "code; resolve for this kind and it is left out"},
    {EILSEQ, true,
     "the address is not the start of an instruction; the resolution may be "
     "older than the last module load, or of another kernel: resolve again"},
    {ENOENT, true,
     "no function there, or its module is gone; the resolution may be older "
     "than the last module load, or of another kernel: resolve again"},
    {EADDRNOTAVAIL, true,
     "several functions have the name, and a kprobe by name takes none then; "
     "attach by address, which needs kallsyms to show addresses "
     "(kernel.kptr_restrict 0 or 1, and privilege)"},
    {EBUSY, true,
     "something else has patched the function, a livepatch for example"},
    {EACCES, false,
     "not permitted; kprobes need CAP_PERFMON or root, whatever "
     "kernel.perf_event_paranoid says"},
    {EPERM, false,
     "not permitted; kprobes need CAP_PERFMON or root, and a kernel that is "
     "not locked down to confidentiality (/sys/kernel/security/lockdown)"},
    {EMFILE, false, "out of descriptors; raise RLIMIT_NOFILE (ulimit -n)"},
    {ENFILE, false, "the system is out of descriptors; raise fs.file-max"},
    {ENOMEM, false, "the kernel has no memory for a kprobe"},
    {ENODEV, false, "the CPU went offline meanwhile; try again",
     absl::StatusCode::kUnavailable},
    {E2BIG, false, "the kernel is too old for its own kprobe PMU's attributes",
     absl::StatusCode::kUnimplemented},
    {EOPNOTSUPP, false, "the kernel has no kprobes for perf events"},
    {ENOSYS, false, "the kernel has no perf events (CONFIG_PERF_EVENTS)"},
};

// What attaching the program to the event returns, by link or by ioctl.
constexpr Hint kProgramHints[] = {
    // bpf_prog_attach_check_attach_type() in kernel/bpf/syscall.c.
    {EINVAL, false,
     "the program was not loaded for single kprobes: that takes type kprobe "
     "without attach type, so not one of kprobe.multi; call PrepareProgram() "
     "for this kind before bpf_object__load()",
     absl::StatusCode::kFailedPrecondition},
    {EBADF, false, "the program's descriptor is not open",
     absl::StatusCode::kInvalidArgument},
    {EACCES, false,
     "not permitted; a security module refuses bpf(2) to this process"},
    {EPERM, false, "not permitted; needs CAP_BPF and CAP_PERFMON, or root"},
    {EMFILE, false, "out of descriptors; raise RLIMIT_NOFILE (ulimit -n)"},
    {ENFILE, false, "the system is out of descriptors; raise fs.file-max"},
    {ENOMEM, false, "the kernel has no memory for a link"},
    {EOPNOTSUPP, false, "the kernel attaches no programs to perf events"},
    {ENOSYS, false, "the kernel has no bpf(2) (CONFIG_BPF_SYSCALL)"},
};

template <size_t kCnt>
const Hint* FindHint(const Hint (&hints)[kCnt], int err) {
  for (const Hint& hint : hints) {
    if (hint.err == err) return &hint;
  }
  return nullptr;
}

std::string SymbolOf(const PerfKprobeCall& call) {
  if (call.module.empty()) return std::string(call.name);
  return absl::StrFormat("%s:%s", Av(call.module), Av(call.name));
}

std::string Describe(const PerfKprobeCall& call) {
  const std::string what =
      absl::StrFormat("%s on %s", Av(KindName(call.kind)), SymbolOf(call));
  if (call.addr == 0) return what + " by name";
  return what + absl::StrFormat(" at %#x", call.addr);
}

absl::Status Error(int err, const Hint* hint, const PerfKprobeCall& call) {
  if (hint == nullptr) return ErrnoStatus(err, Describe(call));
  return ErrnoStatus(err, hint->code.value_or(CodeOfErrno(err)),
                     absl::StrFormat("%s: %s", Describe(call), hint->text));
}

absl::Status OpenError(int err, const PerfKprobeCall& call) {
  return Error(err, FindHint(kOpenHints, err), call);
}

absl::Status ProgramError(int err, const PerfKprobeCall& call) {
  return Error(err, FindHint(kProgramHints, err), call);
}

absl::Status NoCookies(const PerfKprobeCall& call) {
  return absl::UnimplementedError(absl::StrFormat(
      "%s: the kernel passes no cookie to a program on a perf event, which "
      "needs Linux 5.15; attach without cookies and use bpf_get_func_ip() or "
      "the registers, or one program per function",
      Describe(call)));
}

// What the kernel says about a program that fits and no event: EBADF where it
// has BPF links for perf events, EINVAL where not. The caller's own program
// would not do, EINVAL is also what is said about a wrong one. And trying the
// ioctl right away would not do either: up to Linux 7.3 it takes a program of
// kprobe.multi, whose helpers then read what is not there.
int ErrnoOfLinkWithoutEvent(BpfSys& sys) {
  const LoadedProbe program =
      LoadProbeProgram(sys, {.prog_type = kBpfProgTypeKprobe});
  if (!program.fd.valid()) return program.err;
  PerfLinkAttr attr;
  attr.prog_fd = static_cast<uint32_t>(program.fd.get());
  attr.target_fd = static_cast<uint32_t>(-1);
  attr.attach_type = kBpfPerfEvent;
  return -sys.Bpf(kBpfLinkCreate, &attr, sizeof(attr));
}

absl::Status CheckCall(const PerfKprobeCall& call) {
  if (call.kind != Kind::kKprobe && call.kind != Kind::kKretprobe) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s is not attached through perf events", Av(KindName(call.kind))));
  }
  if (call.addr == 0 && call.name.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: neither address nor name given", Av(KindName(call.kind))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<UniqueFd> PerfKprobes::OpenEvent(const PerfKprobeCall& call) {
  const std::string symbol = SymbolOf(call);
  perf_event_attr attr = {};
  attr.size = sizeof(attr);
  attr.type = pmu_.type;
  if (call.kind == Kind::kKretprobe) attr.config = pmu_.retprobe_config;
  if (call.addr != 0) {
    attr.config2 = call.addr;
  } else {
    attr.config1 = reinterpret_cast<uintptr_t>(symbol.c_str());
  }
  const int result = perf_.OpenEvent(&attr);
  if (result < 0) return OpenError(-result, call);
  return UniqueFd(result);
}

absl::StatusOr<Link> PerfKprobes::AttachByLink(const PerfKprobeCall& call,
                                               const UniqueFd& event) {
  PerfLinkAttr attr;
  attr.prog_fd = static_cast<uint32_t>(call.prog_fd);
  attr.target_fd = static_cast<uint32_t>(event.get());
  attr.attach_type = kBpfPerfEvent;
  attr.cookie = call.cookie;
  const int result = bpf_.Bpf(kBpfLinkCreate, &attr, sizeof(attr));
  if (result < 0) return ProgramError(-result, call);
  return Link(result);
}

absl::StatusOr<Link> PerfKprobes::AttachByIoctl(const PerfKprobeCall& call,
                                                UniqueFd event) {
  if (call.cookie != 0) return NoCookies(call);
  int result = perf_.Ioctl(event.get(), PERF_EVENT_IOC_SET_BPF,
                           static_cast<unsigned long>(call.prog_fd));
  if (result >= 0) {
    result = perf_.Ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0);
  }
  if (result < 0) return ProgramError(-result, call);
  return Link(event.Release());
}

void PerfKprobes::FindForm() {
  if (form_ != Form::kUntried) return;
  const int err = ErrnoOfLinkWithoutEvent(bpf_);
  if (err == EBADF) form_ = Form::kLink;
  if (err == EINVAL) form_ = Form::kIoctl;
  // Any other errno proves nothing; asked again the next time.
}

absl::StatusOr<Link> PerfKprobes::Attach(const PerfKprobeCall& call) {
  const absl::Status status = CheckCall(call);
  if (!status.ok()) return status;
  if (form_ == Form::kIoctl && call.cookie != 0) return NoCookies(call);
  absl::StatusOr<UniqueFd> event = OpenEvent(call);
  if (!event.ok()) return event.status();
  if (form_ != Form::kIoctl) {
    absl::StatusOr<Link> link = AttachByLink(call, *event);
    if (link.ok()) form_ = Form::kLink;
    if (ErrnoOf(link.status()) == EINVAL) FindForm();
    if (form_ != Form::kIoctl) return link;
  }
  return AttachByIoctl(call, *std::move(event));
}

bool IsAboutFunction(const absl::Status& status) {
  const int err = ErrnoOf(status);
  const Hint* hint = FindHint(kOpenHints, err);
  if (hint == nullptr || !hint->about_function) return false;
  // Of the errnos that both steps know, the code tells the step.
  return err != EINVAL || status.code() == absl::StatusCode::kInvalidArgument;
}

std::string PerfKprobeRefusal(int err) {
  const Hint* hint = FindHint(kOpenHints, err);
  return hint == nullptr ? ErrnoText(err) : hint->text;
}

}  // namespace ksweep
