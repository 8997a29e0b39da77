#include "ksweep/sections.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/str_format.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

// What PrepareLoad() has to do, as the cookie of a handler.
constexpr long kSleepable = 1 << 0;
constexpr long kFindsTarget = 1 << 1;

struct Section {
  const char* name;
  uint32_t prog_type;
  uint32_t attach_type;
  long cookie;
};

// kprobe.multi and kretprobe.multi are known to every libbpf from 1.0 on.
constexpr Section kSections[] = {
    {"kprobe.session", kBpfProgTypeKprobe, kBpfTraceKprobeSession, 0},
    {"fsession", kBpfProgTypeTracing, kBpfTraceFsession, kFindsTarget},
    {"fsession.s", kBpfProgTypeTracing, kBpfTraceFsession,
     kFindsTarget | kSleepable},
    // These are loaded without a target, whatever is behind a slash: their link
    // has the targets. The kernel refuses a BTF id (Linux v7.3,
    // kernel/bpf/verifier.c, bpf_check_attach_btf_id_multi()).
    {"fentry.multi", kBpfProgTypeTracing, kBpfTraceFentryMulti, 0},
    {"fentry.multi.s", kBpfProgTypeTracing, kBpfTraceFentryMulti, kSleepable},
    {"fexit.multi", kBpfProgTypeTracing, kBpfTraceFexitMulti, 0},
    {"fexit.multi.s", kBpfProgTypeTracing, kBpfTraceFexitMulti, kSleepable},
    {"fsession.multi", kBpfProgTypeTracing, kBpfTraceFsessionMulti, 0},
    {"fsession.multi.s", kBpfProgTypeTracing, kBpfTraceFsessionMulti,
     kSleepable},
};

// The BTF id of a function of the core kernel, or a negative errno.
int FindFunction(const char* name) {
  struct Free {
    void operator()(btf* loaded) const { btf__free(loaded); }
  };
  const std::unique_ptr<btf, Free> kernel_btf(btf__load_vmlinux_btf());
  if (kernel_btf == nullptr) return -errno;
  return btf__find_by_name_kind(kernel_btf.get(), name, BTF_KIND_FUNC);
}

// Called by libbpf right before it loads `prog`. Its own handlers would look
// for a target for all tracing programs; a handler of ours without this gets
// none.
int PrepareLoad(bpf_program* prog, bpf_prog_load_opts* opts, long cookie) {
  if ((cookie & kSleepable) != 0) opts->prog_flags |= BPF_F_SLEEPABLE;
  // Set by bpf_program__set_attach_target().
  const bool has_target = opts->attach_btf_id != 0 || opts->attach_prog_fd != 0;
  if ((cookie & kFindsTarget) == 0 || has_target) return 0;
  const char* slash = std::strchr(bpf_program__section_name(prog), '/');
  if (slash == nullptr) return 0;
  const int id = FindFunction(slash + 1);
  if (id < 0) return id;
  opts->attach_btf_id = static_cast<__u32>(id);
  return 0;
}

// Whether SEC(section.name) stands for what it should, by whose doing ever.
bool IsKnown(const Section& section) {
  bpf_prog_type prog_type = BPF_PROG_TYPE_UNSPEC;
  bpf_attach_type attach_type = {};
  return libbpf_prog_type_by_name(section.name, &prog_type, &attach_type) ==
             0 &&
         prog_type == section.prog_type &&
         static_cast<uint32_t>(attach_type) == section.attach_type;
}

absl::Status Register(const Section& section) {
  LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .cookie = section.cookie,
              .prog_prepare_load_fn = PrepareLoad);
  const int id = libbpf_register_prog_handler(
      // With or without "/…".
      (std::string(section.name) + "+").c_str(),
      static_cast<bpf_prog_type>(section.prog_type),
      static_cast<bpf_attach_type>(section.attach_type), &opts);
  if (id < 0) {
    return ErrnoStatus(
        -id,
        absl::StrFormat("registering SEC(\"%s\") with libbpf", section.name));
  }
  if (IsKnown(section)) return absl::OkStatus();
  // libbpf takes the handler that was first. Not the last to be unregistered,
  // with which libbpf 1.1 would free its table twice.
  libbpf_unregister_prog_handler(id);
  return absl::FailedPreconditionError(absl::StrFormat(
      "SEC(\"%s\") is registered with libbpf for something else already; call "
      "RegisterSections() first, or prepare programs with PrepareProgram()",
      section.name));
}

}  // namespace

absl::Status RegisterSections() {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  for (const Section& section : kSections) {
    // Handlers that are registered go before libbpf's own, which can do more.
    if (IsKnown(section)) continue;
    const absl::Status status = Register(section);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace ksweep
