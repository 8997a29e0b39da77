#include "lib/attach/features/feature_probes.h"

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/attach/features/probe_program.h"
#include "lib/attach/kinds/kprobe_pmu.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"
#include "lib/base/unique_fd.h"

namespace ksweep {
namespace {

// Where no process can have memory, so that reading it is EFAULT for sure. A
// count of 0 would not do: that is EINVAL, as is a kind the kernel never heard
// of.
constexpr uint64_t kUnreadable = ~uint64_t{7};

struct ErrnoAndName {
  int err;
  const char* name;
};

constexpr ErrnoAndName kErrnoNames[] = {
    {EOPNOTSUPP, "EOPNOTSUPP"}, {kKernelEnotsupp, "ENOTSUPP (524)"},
    {EINVAL, "EINVAL"},         {E2BIG, "E2BIG"},
    {ENOSYS, "ENOSYS"},         {ENOENT, "ENOENT"},
    {EPERM, "EPERM"},           {EACCES, "EACCES"},
};

struct KindNeeds {
  Kind kind;
  ProbeProgram program;
  const char* since;   // what a kernel that does not know the kind lacks
  const char* config;  // what one that knows it may be built without
};

constexpr KindNeeds kNeeds[] = {
    {Kind::kKprobeMulti,
     {kBpfProgTypeKprobe, kBpfTraceKprobeMulti, 0},
     "Linux 5.18",
     "CONFIG_FPROBE is off"},
    {Kind::kKprobeSession,
     {kBpfProgTypeKprobe, kBpfTraceKprobeSession, 0},
     "Linux 6.10",
     "CONFIG_FPROBE is off"},
    {Kind::kFentry,
     {kBpfProgTypeTracing, kBpfTraceFentry, 0},
     "Linux 5.5",
     "no BPF trampolines on this architecture or in this configuration"},
    {Kind::kFsession,
     {kBpfProgTypeTracing, kBpfTraceFsession, 0},
     "Linux 7.0 or so",
     "no BPF trampolines for sessions on this architecture"},
    {Kind::kFentryMulti,
     {kBpfProgTypeTracing, kBpfTraceFentryMulti, 0},
     "Linux 7.2 or so",
     "no direct calls from ftrace on this architecture or in this "
     "configuration"},
    {Kind::kFsessionMulti,
     {kBpfProgTypeTracing, kBpfTraceFsessionMulti, 0},
     "Linux 7.2 or so",
     "no direct calls from ftrace or no session trampolines on this "
     "architecture or in this configuration"},
};

const KindNeeds& NeedsOf(Kind kind) {
  for (const KindNeeds& needs : kNeeds) {
    if (needs.kind == kind) return needs;
  }
  return kNeeds[0];  // not reached: callers pass kinds of the table
}

Feature Yes(std::string why) {
  return {.support = Support::kYes, .tried = true, .why = std::move(why)};
}

std::string Answered(std::string_view what, int err) {
  return absl::StrFormat("%s: the kernel answered %s", Av(what),
                         ErrnoName(err));
}

bool IsNotPermitted(int err) { return err == EPERM || err == EACCES; }

// What a refusal means that is not the one a kernel with the kind gives.
Feature Refused(const KindNeeds& needs, int err) {
  Feature feature{.tried = true, .err = err};
  if (IsNotPermitted(err)) {
    feature.support = Support::kNotPermitted;
    feature.why = Answered(
        "not permitted to find out, needs CAP_BPF and CAP_PERFMON or root",
        err);
  } else if (err == ENOSYS) {
    feature.support = Support::kNo;
    feature.why = Answered("no bpf(2), CONFIG_BPF_SYSCALL is off", err);
  } else if (IsNotSupported(err)) {
    feature.support = Support::kNo;
    feature.why = Answered(needs.config, err);
  } else if (err == EINVAL || err == E2BIG) {
    feature.support = Support::kNo;
    feature.why = Answered(
        absl::StrFormat("not known to the kernel, came with %s", needs.since),
        err);
  } else {
    feature.why = Answered("trying failed", err);
  }
  return feature;
}

// Makes a link that a kernel with the kind refuses with EFAULT.
template <typename LinkAttr>
Feature TryLink(BpfSys& sys, const KindNeeds& needs, LinkAttr attr) {
  const LoadedProbe program = LoadProbeProgram(sys, needs.program);
  if (!program.fd.valid()) return Refused(needs, program.err);
  attr.prog_fd = static_cast<uint32_t>(program.fd.get());
  attr.attach_type = needs.program.attach_type;
  const int result = sys.Bpf(kBpfLinkCreate, &attr, sizeof(attr));
  const UniqueFd link(result);  // of none in truth
  if (result >= 0 || result == -EFAULT) {
    return Yes("tried: the kernel looks at the functions");
  }
  return Refused(needs, -result);
}

// 0, or the errno of loading or of attaching.
int TryTrampolineOn(BpfSys& sys, ProbeProgram program, uint32_t btf_id) {
  program.attach_btf_id = btf_id;
  const LoadedProbe loaded = LoadProbeProgram(sys, program);
  if (!loaded.fd.valid()) return loaded.err;
  TracingLinkAttr attr;
  attr.prog_fd = static_cast<uint32_t>(loaded.fd.get());
  attr.attach_type = program.attach_type;
  const int result = sys.Bpf(kBpfLinkCreate, &attr, sizeof(attr));
  const UniqueFd link(result);
  return result < 0 ? -result : 0;
}

Feature WithoutBtf(const BtfMarks& btf) {
  Feature feature{.err = btf.err};
  if (IsNotPermitted(btf.err)) {
    feature.support = Support::kNotPermitted;
  } else if (btf.err == ENOENT) {
    feature.support = Support::kNo;
  }
  feature.why = absl::StrFormat(
      "no BTF of the kernel, which takes CONFIG_DEBUG_INFO_BTF and /sys: %s: "
      "%s",
      btf.path, ErrnoText(btf.err));
  return feature;
}

Feature OfPmu(const absl::Status& status) {
  Feature feature{.err = ErrnoOf(status), .why = std::string(status.message())};
  if (status.code() == absl::StatusCode::kUnimplemented) {
    feature.support = Support::kNo;
  } else if (status.code() == absl::StatusCode::kPermissionDenied) {
    feature.support = Support::kNotPermitted;
  }
  return feature;
}

// What the PMU says about neither name nor address. EINVAL is register_kprobe()
// (kernel/kprobes.c), all before it went well.
Feature OfEmptyEvent(int err) {
  if (err == EINVAL) return Yes("tried: the kernel looks at the function");
  Feature feature{.tried = true, .err = err};
  if (IsNotPermitted(err)) {
    feature.support = Support::kNotPermitted;
    feature.why =
        Answered("not permitted to find out, needs CAP_PERFMON or root", err);
  } else if (IsNotSupported(err) || err == ENOENT || err == ENOSYS) {
    feature.support = Support::kNo;
    feature.why = Answered("no perf events of kprobes", err);
  } else {
    feature.why = Answered("trying failed", err);
  }
  return feature;
}

}  // namespace

bool IsNotSupported(int err) {
  return err == EOPNOTSUPP || err == kKernelEnotsupp;
}

std::string ErrnoName(int err) {
  for (const ErrnoAndName& entry : kErrnoNames) {
    if (entry.err == err) return entry.name;
  }
  return ErrnoText(err);
}

Feature TryKprobeMulti(BpfSys& sys, Kind kind) {
  KprobeMultiLinkAttr attr;
  attr.addrs = kUnreadable;
  attr.cnt = 1;
  return TryLink(sys, NeedsOf(kind), attr);
}

Feature TryTracingMulti(BpfSys& sys, Kind kind) {
  TracingMultiLinkAttr attr;
  attr.ids = kUnreadable;
  attr.cnt = 1;
  return TryLink(sys, NeedsOf(kind), attr);
}

Feature TryTrampoline(BpfSys& sys, const BtfMarks& btf, Kind kind) {
  if (btf.err != 0) return WithoutBtf(btf);
  const KindNeeds& needs = NeedsOf(kind);
  if (btf.one_arg_id == 0) {
    return {.support = Support::kYes,
            .why =
                "the kernel has BTF; not tried for want of its function "
                "for tests, bpf_fentry_test1"};
  }
  const int err = TryTrampolineOn(sys, needs.program, btf.one_arg_id);
  if (err == 0) return Yes("tried on bpf_fentry_test1");
  return Refused(needs, err);
}

Feature TryPerfKprobe(PerfSys& perf, const KernelFiles& files) {
  const absl::StatusOr<KprobePmu> pmu = ReadKprobePmu(files);
  if (!pmu.ok()) return OfPmu(pmu.status());
  perf_event_attr attr = {};
  attr.size = sizeof(attr);
  attr.type = pmu->type;
  const int result = perf.OpenEvent(&attr);
  const UniqueFd event(result);
  return OfEmptyEvent(result < 0 ? -result : EINVAL);
}

int TryFentryOn(BpfSys& sys, uint32_t btf_id) {
  return TryTrampolineOn(sys, NeedsOf(Kind::kFentry).program, btf_id);
}

}  // namespace ksweep
