// From a resolution to links in the kernel.
//
//   absl::Status status =
//       ksweep::PrepareProgram(prog, ksweep::Kind::kKprobeMulti);
//   if (!status.ok()) return status;
//   if (bpf_object__load(obj) != 0) …
//   auto attachment = ksweep::Attach(*resolution, prog);

#ifndef KSWEEP_ATTACH_H_
#define KSWEEP_ATTACH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/attachment.h"
#include "ksweep/kind.h"
#include "ksweep/resolve.h"

struct bpf_program;

namespace ksweep {

// The most functions that one kprobe.multi link takes on every kernel. From
// Linux 6.18 on the kernel needs 32 contiguous bytes for each and fails with
// ENOMEM and a warning from 131,072 on.
inline constexpr uint32_t kMaxPerLink = 131070;

// Makes `prog` a program of `kind`, between bpf_object__open() and
// bpf_object__load(): the kernel wants the attach type at load. Any section
// name that libbpf does not know or takes for a kprobe, as SEC("kprobe") and
// SEC("kprobe.multi"), will do; for fentry.multi, fexit.multi and
// fsession.multi any that it does not know, or takes for one of these. From
// then on bpf_program__attach() and a skeleton's attach() leave the program
// alone.
//
// Programs of these three have no arguments in their context: they ask
// bpf_get_func_arg(), bpf_get_func_arg_cnt() and bpf_get_func_ret(). For the
// functions of a module such a program is loaded once more by Attach(), with
// the same maps; one with callbacks cannot be.
//
// FailedPrecondition if the program is loaded already, was prepared for a kind
// that needs another type or given one by other means, or has a section name of
// another type, as SEC("fentry/x"), or of sleepable programs, which only links
// by BTF take. In a section that
// is named for a kind, as SEC("kprobe.multi"), a program whose auto-attach is
// off (bpf_program__set_autoattach()) counts as prepared for it.
absl::Status PrepareProgram(bpf_program* prog, Kind kind);

// The same, and for fentry, fexit and fsession also what the kernel wants to
// know at load: a function. That is the first target of `resolution` that fits;
// so these programs are prepared with it, and for one function after the other
// Attach() loads them once more. Any section of a tracing program will do here,
// as SEC("fentry"), or one that libbpf does not know.
//
//   absl::Status status =
//       ksweep::PrepareProgram(prog, ksweep::Kind::kFentry, *resolution);
//
// The program is verified for every function by itself: one that reads the
// context beyond a function's arguments is refused for that function.
//
// Also NotFound if no target fits. Has libbpf read the kernel's BTF, some tens
// of milliseconds, which it would do at load.
absl::Status PrepareProgram(bpf_program* prog, Kind kind,
                            const Resolution& resolution);

// What kind was chosen for a program.
struct KindChoice {
  Kind kind = Kind::kKprobeMulti;
  // For people, what was chosen and why nothing better: "kprobe, which 2 of 2
  // targets fit; not kprobe.multi (CONFIG_FPROBE is off: …)".
  std::string why;
};

// For AttachOptions::kind: what the program was prepared for. For
// PrepareProgram(): the best kind.
inline constexpr std::nullopt_t kAuto = std::nullopt;

// Prepares `prog` for the best kind that its section name stands for, that the
// running kernel has, and, with a resolution, that some target fits:
//
//   SEC("kprobe…")         kprobe.multi, else kprobe
//   SEC("kretprobe…")      kretprobe.multi, else kretprobe
//   SEC("fentry.multi")    fentry.multi, else fentry; fexit, fsession alike
//   SEC("kprobe.session")  kprobe.session; SEC("fentry") fentry, and so on
//
// Either before Resolve(), with the answer for ResolveOptions::kinds, or after
// it with several kinds. Nothing is asked of the kernel where there is no
// choice, else once in the process, see features.h.
//
// FailedPrecondition if no kind is left, with what is against each; else as
// above.
absl::StatusOr<KindChoice> PrepareProgram(
    bpf_program* prog, std::nullopt_t, const Resolution* resolution = nullptr);

// Refused functions that the error of OnRefused::kFail names.
inline constexpr uint32_t kMaxNamedRefused = 3;

// Refused functions of those that no list said the kernel accepts, see
// Target::untested, before it fails: with so many, isolating is the wrong way
// to find out what is traceable. Read the kernel's filter list instead.
inline constexpr uint32_t kMaxUntestedRefused = 256;

// What becomes of the others if the kernel refuses a function. It refuses a
// link as a whole and does not say which function it is, so they are isolated
// by attaching to parts for a moment, in which the program may be hit: with n
// functions and k refused in about k·log2(n) calls, at most
// 2k·(⌈log2(n/k)⌉ + 1) + 3. If no function is refused it is one call as ever.
//
// Where the first call is refused some functions are tried alone, at most 16;
// if none is accepted it is the call that is wrong, and it fails without
// isolating anything. So does an errno that is never about a function: EPERM,
// EMFILE, EOPNOTSUPP, ….
enum class OnRefused : uint8_t {
  // Nothing is attached, and the error names the refused functions, at most
  // kMaxNamedRefused: nobody misses a function without knowing it. Costs some
  // 20 calls for each named, and attaching to most others for a moment.
  kFail,
  // All others are attached; see Attachment::refused().
  kSkip,
  // As kSkip, but fails with more than AttachOptions::max_refused.
  kSkipUpTo,
};

struct AttachOptions {
  // One that the program was prepared for and the resolution was made with.
  // kAuto takes the only one that is both; of an entry and a return kind that
  // need the same program, as kprobe.multi and kretprobe.multi, the first that
  // the resolution was made with.
  std::optional<Kind> kind = kAuto;
  // Functions in one link, at most kMaxPerLink. One big link is the cheap
  // form: every link copies what is already attached. Fewer bound the time of
  // one system call. Halved by itself while the kernel has no memory for a
  // link.
  uint32_t max_per_link = kMaxPerLink;
  // For the kinds with a program and a link for each function, fentry, fexit
  // and fsession: how many the kernel is asked for at a time. It waits some
  // tens of milliseconds at each, attaching and detaching; on Linux 6.12 0.15 s
  // at each detached. That seems to be under a lock: threads make loading up to
  // three times as fast, and the rest not (Linux 6.12 and 7.3). 1: one after
  // the other, on the caller's thread, as all else is.
  uint32_t threads = 16;
  // One link or more for the core kernel and for each module, so that
  // Attachment::Update() and Release() can change a part. Keeps a descriptor
  // of each program.
  bool updatable = false;
  // Tries a function that is refused by its address once more by its name, in
  // a link of its own, where the kernel can take no other for it. That helps
  // where the address is older than the kernel's: a module was loaded again
  // after Resolve(). The function is attached at another address than its
  // target's then: FindByIp() does not find it, the cookie does.
  bool retry_by_name = false;
  // The most functions for the kinds that need a link for each: kprobe,
  // kretprobe, fentry, fexit, fsession. These take tens of milliseconds, and
  // more, for each to attach and to detach again, and a descriptor; with more
  // than this nothing is attached.
  uint32_t max_single = 1000;
  // Raises the soft limit of descriptors (RLIMIT_NOFILE) as far as needed and
  // allowed, for the whole process. Otherwise too low a limit fails before
  // anything is attached, with need and have.
  bool raise_fd_limit = false;
  // A switch in the data of the BPF object, as `&skel->bss->ready` of a `bool
  // ready;` (with `typedef _Bool bool;`, for the skeleton's sake), that the
  // program returns early on while it is false. It is false during the attach
  // and true as soon as everything is attached, so that no event comes before
  // that, also none from attaching to parts for a moment; and false again
  // before detaching. Has to outlive the Attachment. Null: none.
  bool* ready = nullptr;
  OnRefused on_refused = OnRefused::kFail;
  uint64_t max_refused = 0;  // for kSkipUpTo
  // Called before each call with the functions attached so far and in all;
  // false stops, detaches everything, and makes the result Cancelled. The first
  // number stays the same while refused functions are isolated.
  std::function<bool(uint64_t done, uint64_t total)> progress;
};

// A program, loaded, and the kind it was prepared for.
struct KindProgram {
  Kind kind = Kind::kKprobeMulti;
  const bpf_program* prog = nullptr;
  // Why it is not loaded, for people: the kernel lacks the kind, or a preferred
  // one stands in its way. Attach() leaves it aside then. Empty: it is there.
  std::string absent = {};
};

// A program before load, and the kind it is written for.
struct WantedProgram {
  Kind kind = Kind::kKprobeMulti;
  bpf_program* prog = nullptr;
};

// Prepares several programs for one Attach(), the preferred first, on kernels
// that may lack some of the kinds: one of such a kind is left unloaded, and
// what is attached with those that are left takes its targets. So is one that
// cannot stand beside a preferred one, a session beside another kind for entry
// or return: {fentry.multi, kprobe.session} takes the one or the other.
//
//   auto programs = ksweep::PreparePrograms(
//       {{{Kind::kFentryMulti, skel->progs.by_trampoline},
//         {Kind::kKprobeMulti, skel->progs.by_kprobe}}});
//   …load, and Resolve() for both kinds…
//   auto attachment = ksweep::Attach(*resolution, *programs);
//   puts(attachment->Report().ToString().c_str());  // says what is absent
//
// Takes fentry.multi for what has BTF where there are tracing_multi links
// (Linux 7.2), kprobe.multi for the rest, and kprobe.multi for all on older
// kernels. A program of one kind cannot become another's by itself: each reads
// its arguments in its own way. `resolution` is needed for fentry, fexit and
// fsession, see PrepareProgram().
//
// Asks the kernel about each kind, once in the process, see features.h; one
// that it may not be asked about counts as there, and the attach will tell.
//
// Unimplemented, with what each kind needs and what the kernel has, if none is
// left, or none for the entry or for the return of functions where one for just
// that was given; then no program was changed. InvalidArgument if two are of one kind; and
// those of PrepareProgram().
absl::StatusOr<std::vector<KindProgram>> PreparePrograms(
    absl::Span<const WantedProgram> programs,
    const Resolution* resolution = nullptr);

// Attaches `prog`, loaded, to the targets of `resolution` that fit the kind:
// by address in as few links as possible, or by name if the kernel hides
// addresses. After an error nothing is attached; without one everything is, but
// for what AttachOptions::on_refused lets be skipped.
//
// Errors keep the errno, see ErrnoOf() in status.h:
// FailedPrecondition  the program was prepared for another kind, is not
//                     loaded, or the resolution was made for other kinds
// InvalidArgument     no target; or the kernel refused the call (EINVAL)
// NotFound            the kernel does not find or trace the functions named
// Unimplemented       the kernel has no kprobe.multi (CONFIG_FPROBE)
// PermissionDenied, ResourceExhausted, Cancelled
//
// Requires Linux 5.18, kKprobeSession 6.10 (CONFIG_FPROBE); the kinds of
// tracing_multi links 7.2 or so (x86-64), and CAP_SYS_ADMIN for functions of
// modules. While Attach() loads a program once more, its BPF object has to be
// open; with AttachOptions::updatable not any longer. Thread-safe.
absl::StatusOr<Attachment> Attach(const Resolution& resolution,
                                  const bpf_program* prog,
                                  const AttachOptions& options = {});

// Attaches several programs of different kinds as one Attachment, in which a
// function has one slot. A target is attached once at its entry and once at its
// return, by the first of `programs` of a kind for it that the target fits: so
// kprobe.multi and kretprobe.multi are a pair, and kprobe.multi behind
// fentry.multi takes what has no BTF. Targets that fit none are left out.
//
// Returns are attached before entries, so that no entry comes without its
// return. A function that the kernel refuses at its return is not attached at
// its entry either.
//
// Those that PreparePrograms() found absent are left aside; see
// AttachReport::absent.
//
// InvalidArgument if two are of one kind, or if one for both entry and return
// (a session) stands beside one for either. AttachOptions::kind is not used.
absl::StatusOr<Attachment> Attach(const Resolution& resolution,
                                  absl::Span<const KindProgram> programs,
                                  const AttachOptions& options = {});

// The same for a program loaded by other means than libbpf; whether it was
// loaded for the kind is left for the kernel to check. With kAuto the kind is
// the one that the resolution was made with, if it is one.
absl::StatusOr<Attachment> AttachFd(const Resolution& resolution, int prog_fd,
                                    const AttachOptions& options = {});

}  // namespace ksweep

#endif  // KSWEEP_ATTACH_H_
