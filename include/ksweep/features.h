// What the running kernel can attach, found out by trying.
//
//   ksweep::Features& features = ksweep::Features::Running();
//   const ksweep::Feature session =
//       features.Find(ksweep::Kind::kKprobeSession);
//   if (session.support != ksweep::Support::kYes) puts(session.why.c_str());

#ifndef KSWEEP_FEATURES_H_
#define KSWEEP_FEATURES_H_

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ksweep/kernel_files.h"
#include "ksweep/kind.h"
#include "ksweep/resolve.h"

namespace ksweep {

class BpfSys;
class PerfSys;
struct BtfMarks;

enum class Support : uint8_t {
  kYes,
  kNo,
  kNotPermitted,  // this process may not find out
  kUnknown,       // trying failed for another reason, as want of memory
};

// "yes", "no", "not permitted", "unknown".
std::string_view SupportName(Support support);

// The answer about a kind.
struct Feature {
  Support support = Support::kUnknown;
  // False for what follows from the kernel's files and was not tried, or
  // from an attach that failed, see Features::Remember().
  bool tried = false;
  int err = 0;           // the errno that decided; 0: none
  std::string why = {};  // for people
};

// Which kinds the kernel can attach. Never from its version, which
// distributions make a lie of, and not from an attach type in its BTF either:
// that is there without CONFIG_FPROBE too. A kind is tried with the smallest
// program there is, in a call that a kernel which has the kind refuses for
// something else: functions in memory that cannot be read. No function is
// patched, but for fentry, fexit and fsession: they tell only at the real
// attach, so they are attached to bpf_fentry_test1 for a moment, a function
// that the kernel has for tests and never calls by itself.
//
// Lazy: nothing is asked before it is needed, and everything once. kprobe.multi
// and kprobe.session cost a program and a link call, some tens of microseconds;
// fentry reads the kernel's BTF, some tens of milliseconds, and waits for the
// kernel as long again. The way kretprobe.multi, fexit, fexit.multi and
// kretprobe are made is the one of their counterparts, and so is the answer.
//
// Thread-safe: a second thread waits for the answer of the first.
class Features {
 public:
  // Of the running kernel, for the whole process.
  static Features& Running();

  // Of what is behind the seams, which have to outlive it. For the library and
  // its tests.
  Features(BpfSys& bpf, PerfSys& perf, KernelFiles files);
  ~Features();

  // True or false; an error with errno if it cannot be found out:
  // PermissionDenied, which is remembered too, or what else came in between,
  // which is tried again the next time.
  absl::StatusOr<bool> Has(Kind kind);

  // The same with its reason: "CONFIG_FPROBE is off: the kernel answered
  // EOPNOTSUPP".
  Feature Find(Kind kind);
  std::string Why(Kind kind) { return Find(kind).why; }

  // Tells of an attach of `kind` that failed with `err`. EOPNOTSUPP and the
  // kernel's ENOTSUPP (524) make a "no" of it that needs no trying, and also of
  // a "yes" that was not tried. They do not of one that was: then they are
  // about a function, as one with a return value that the trampoline cannot
  // pass on, or with more arguments. All others are not about the kernel.
  void Remember(Kind kind, int err);

  // Arguments that a function may have for fentry, fexit and fsession, up to
  // which the kernel will take it: 12, or 6 if its trampolines leave out those
  // that come on the stack. The unit of a single try with 7; where trampolines
  // take some more and not all, the kernel refuses the function. Unimplemented
  // without fentry.
  absl::StatusOr<uint32_t> MaxTrampolineArgs();

  // The same for ResolveOptions::limits, so that Resolve() leaves out what this
  // kernel's trampolines cannot take. Where arguments may not come on the
  // stack, structs by value are taken for refused as well, which is so before
  // Linux 6.0 and costs a few functions up to 6.6; unions are always.
  absl::StatusOr<TraceLimits> Limits();

  // For people: a line for each kind with the answer and the reason. Asks about
  // all that is not known yet.
  std::string ToString();

 private:
  // All of these with mutex_ held.
  const Feature& FindLocked(Kind kind);
  Feature Try(Kind kind);
  const BtfMarks& Btf();
  absl::StatusOr<uint32_t> TryTrampolineArgs();

  BpfSys& bpf_;
  PerfSys& perf_;
  const KernelFiles files_;

  std::mutex mutex_;
  // By the kind that is tried, see TriedFor() in features.cc.
  std::array<std::optional<Feature>, kKindCnt> found_;
  std::unique_ptr<const BtfMarks> btf_;
  std::optional<uint32_t> max_args_;
};

}  // namespace ksweep

#endif  // KSWEEP_FEATURES_H_
