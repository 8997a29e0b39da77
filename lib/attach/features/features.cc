#include "ksweep/features.h"

#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/attach/features/btf_marks.h"
#include "lib/attach/features/feature_probes.h"
#include "lib/base/abseil.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/errno_status.h"
#include "lib/base/perf_sys.h"

namespace ksweep {
namespace {

// The most arguments that any kernel's trampolines pass (MAX_BPF_FUNC_ARGS),
// and those that come in registers on x86-64.
constexpr uint32_t kMaxFuncArgs = 12;
constexpr uint32_t kRegisterArgs = 6;

// The kind whose answer is the answer for `kind`: the return kinds are made by
// the same calls in the same configurations as the entry kinds.
Kind TriedFor(Kind kind) {
  switch (kind) {
    case Kind::kKretprobeMulti:
      return Kind::kKprobeMulti;
    case Kind::kKretprobe:
      return Kind::kKprobe;
    case Kind::kFexit:
      return Kind::kFentry;
    case Kind::kFexitMulti:
      return Kind::kFentryMulti;
    default:
      return kind;
  }
}

size_t IndexOf(Kind kind) { return static_cast<size_t>(TriedFor(kind)); }

// What BTF says about a kind; nothing where it has no mark of it.
std::optional<bool> IsInBtf(Kind kind, const BtfMarks& btf) {
  if (btf.err != 0) return std::nullopt;
  switch (kind) {
    case Kind::kKprobeMulti:
      return btf.has_kprobe_multi;
    case Kind::kKprobeSession:
      return btf.has_kprobe_multi && btf.has_session;
    case Kind::kFentryMulti:
    case Kind::kFsessionMulti:
      return btf.has_tracing_multi;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string_view SupportName(Support support) {
  switch (support) {
    case Support::kYes:
      return "yes";
    case Support::kNo:
      return "no";
    case Support::kNotPermitted:
      return "not permitted";
    case Support::kUnknown:
      break;
  }
  return "unknown";
}

Features& Features::Running() {
  static Features running(BpfSys::Kernel(), PerfSys::Kernel(), KernelFiles());
  return running;
}

Features::Features(BpfSys& bpf, PerfSys& perf, KernelFiles files)
    : bpf_(bpf), perf_(perf), files_(std::move(files)) {}

Features::~Features() = default;

const BtfMarks& Features::Btf() {
  if (btf_ == nullptr) {
    btf_ = std::make_unique<const BtfMarks>(ReadBtfMarks(files_));
  }
  return *btf_;
}

Feature Features::Try(Kind kind) {
  switch (kind) {
    case Kind::kKprobe:
      return TryPerfKprobe(perf_, files_);
    case Kind::kFentry:
    case Kind::kFsession:
      return TryTrampoline(bpf_, Btf(), kind);
    case Kind::kFentryMulti:
    case Kind::kFsessionMulti:
      return TryTracingMulti(bpf_, kind);
    default:
      return TryKprobeMulti(bpf_, kind);
  }
}

const Feature& Features::FindLocked(Kind kind) {
  std::optional<Feature>& found = found_[IndexOf(kind)];
  if (found.has_value() && found->support != Support::kUnknown) return *found;
  const Kind tried = TriedFor(kind);
  found = Try(tried);
  if (found->support == Support::kNotPermitted) {
    // Who may not try can still read.
    const std::optional<bool> in_btf = IsInBtf(tried, Btf());
    if (in_btf.has_value()) {
      found->why += *in_btf ? "; by its BTF the kernel has it"
                            : "; by its BTF the kernel does not have it";
    }
  }
  return *found;
}

Feature Features::Find(Kind kind) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return FindLocked(kind);
}

absl::StatusOr<bool> Features::Has(Kind kind) {
  const Feature feature = Find(kind);
  switch (feature.support) {
    case Support::kYes:
      return true;
    case Support::kNo:
      return false;
    default:
      return ErrnoStatus(
          feature.err,
          absl::StrFormat("%s: %s", Av(KindName(kind)), feature.why));
  }
}

void Features::Remember(Kind kind, int err) {
  if (!IsNotSupported(err)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  // With trampolines it may have been about the function, so try first.
  if (NeedsBtf(kind)) FindLocked(kind);
  std::optional<Feature>& found = found_[IndexOf(kind)];
  if (found.has_value() && found->tried && found->support == Support::kYes) {
    return;
  }
  found =
      Feature{.support = Support::kNo,
              .err = err,
              .why = absl::StrFormat("an attach failed: the kernel answered %s",
                                     ErrnoName(err))};
}

absl::StatusOr<uint32_t> Features::TryTrampolineArgs() {
  const Feature& fentry = FindLocked(Kind::kFentry);
  if (fentry.support != Support::kYes) {
    const std::string why = absl::StrFormat("no fentry: %s", fentry.why);
    if (fentry.support != Support::kNo) return ErrnoStatus(fentry.err, why);
    return absl::UnimplementedError(why);
  }
  if (Btf().seven_args_id == 0) return kRegisterArgs;
  const int err = TryFentryOn(bpf_, Btf().seven_args_id);
  if (err == 0) return kMaxFuncArgs;
  if (IsNotSupported(err) || err == EINVAL) return kRegisterArgs;
  return ErrnoStatus(err, "trying fentry on bpf_modify_return_test2");
}

absl::StatusOr<uint32_t> Features::MaxTrampolineArgs() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (max_args_.has_value()) return *max_args_;
  const absl::StatusOr<uint32_t> cnt = TryTrampolineArgs();
  if (cnt.ok()) max_args_ = *cnt;
  return cnt;
}

absl::StatusOr<TraceLimits> Features::Limits() {
  const absl::StatusOr<uint32_t> max_args = MaxTrampolineArgs();
  if (!max_args.ok()) return max_args.status();
  TraceLimits limits;
  limits.max_args = *max_args;
  limits.struct_args = *max_args > kRegisterArgs;
  return limits;
}

std::string Features::ToString() {
  std::string text;
  for (int i = 0; i < kKindCnt; ++i) {
    const Kind kind = static_cast<Kind>(i);
    const Feature feature = Find(kind);
    text += absl::StrFormat("%-16s%-15s%s\n", Av(KindName(kind)),
                            Av(SupportName(feature.support)), feature.why);
  }
  return text;
}

}  // namespace ksweep
