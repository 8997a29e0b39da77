// From a resolution to links in the kernel.
//
//   ksweep::PrepareProgram(prog, ksweep::Kind::kKprobeMulti);  // then load
//   bpf_object__load(obj);
//   auto attachment = ksweep::Attach(*resolution, prog);

#ifndef KSWEEP_ATTACH_H_
#define KSWEEP_ATTACH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ksweep/kind.h"
#include "ksweep/link.h"
#include "ksweep/resolve.h"

struct bpf_program;

namespace ksweep {

class BpfSys;

// The most functions that one kprobe.multi link takes on every kernel. From
// Linux 6.18 on the kernel needs 32 contiguous bytes for each and fails with
// ENOMEM and a warning from 131,072 on.
inline constexpr uint32_t kMaxPerLink = 131070;

// Makes `prog` a program of `kind`, between bpf_object__open() and
// bpf_object__load(): the kernel wants the attach type at load. Any section
// name that libbpf does not know or takes for a kprobe, as SEC("kprobe") and
// SEC("kprobe.multi"), will do.
//
// FailedPrecondition if the program is loaded already, was given another type
// than its section's before, or has a section name of another type, as
// SEC("fentry/x"), or of sleepable programs. Unimplemented for a kind that this
// version cannot attach.
absl::Status PrepareProgram(bpf_program* prog, Kind kind);

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
  Kind kind = Kind::kKprobeMulti;
  // Functions in one link, at most kMaxPerLink. One big link is the cheap
  // form: every link copies what is already attached. Halved by itself while
  // the kernel has no memory for a link.
  uint32_t max_per_link = kMaxPerLink;
  OnRefused on_refused = OnRefused::kFail;
  uint64_t max_refused = 0;  // for kSkipUpTo
  // Called before each call with the functions attached so far and in all;
  // false stops, detaches everything, and makes the result Cancelled. The first
  // number stays the same while refused functions are isolated.
  std::function<bool(uint64_t done, uint64_t total)> progress;
};

// What a link tells about itself.
struct LinkStats {
  uint64_t cnt = 0;     // functions, since Linux 6.6; 0 before
  uint64_t missed = 0;  // hits lost to recursion, since Linux 6.7
};

// A function that the kernel refused.
struct RefusedFunction {
  uint32_t slot = 0;
  uint32_t target = 0;   // index into Resolution::targets()
  int err = 0;           // the kernel's errno
  std::string function;  // "vfs_read" or "nft_do_chain [nf_tables]"
  std::string reason;    // what the errno means, for people
};

// What an attach came to.
struct AttachReport {
  Kind kind = Kind::kKprobeMulti;
  uint64_t attached = 0;  // functions
  std::vector<RefusedFunction> refused;
  uint32_t links = 0;
  uint32_t syscalls = 0;
  int64_t attach_ns = 0;

  // A line, and one more for each refused function, at most ten.
  std::string ToString() const;
};

// Functions attached to, held by their links. Destroying it detaches.
// Movable; const calls are thread-safe.
class Attachment {
 public:
  Kind kind() const { return kind_; }
  const std::vector<Link>& links() const { return links_; }

  // By slot, the index into Resolution::targets(). A slot is a target's number
  // in this attachment, counted over all its links: the cookie of a target if
  // no request has one. Slots are given before the first call and never change:
  // a refused function keeps its slot, which no hit will ever bring.
  const std::vector<uint32_t>& targets() const { return targets_; }

  // By slot, ascending. Empty unless AttachOptions::on_refused lets functions
  // be skipped.
  const std::vector<RefusedFunction>& refused() const { return refused_; }

  // Whether the slot's function was attached, not refused. O(log refused()).
  bool IsAttached(uint32_t slot) const;

  // bpf(2) calls made, and the time in them.
  uint32_t syscalls() const { return syscalls_; }
  int64_t attach_ns() const { return attach_ns_; }

  // What was made, also after Detach().
  AttachReport Report() const;

  // Asks the kernel, once per link, and adds up.
  absl::StatusOr<LinkStats> ReadStats() const;

  // Closes all links. Ok if nothing is attached.
  absl::Status Detach();

 private:
  friend class Attacher;

  Kind kind_ = Kind::kKprobeMulti;
  std::vector<Link> links_;
  std::vector<uint32_t> targets_;
  std::vector<RefusedFunction> refused_;
  uint32_t link_cnt_ = 0;  // made; links_ may have been closed
  uint32_t syscalls_ = 0;
  int64_t attach_ns_ = 0;
  BpfSys* sys_ = nullptr;  // what the links were made through
};

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
// Requires Linux 5.18, kKprobeSession 6.10 (CONFIG_FPROBE). Thread-safe.
absl::StatusOr<Attachment> Attach(const Resolution& resolution,
                                  const bpf_program* prog,
                                  const AttachOptions& options = {});

// The same for a program loaded by other means than libbpf; whether it was
// loaded for the kind is left for the kernel to check.
absl::StatusOr<Attachment> AttachFd(const Resolution& resolution, int prog_fd,
                                    const AttachOptions& options = {});

}  // namespace ksweep

#endif  // KSWEEP_ATTACH_H_
