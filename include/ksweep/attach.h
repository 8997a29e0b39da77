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

struct AttachOptions {
  // One that the program was prepared for and the resolution was made with.
  Kind kind = Kind::kKprobeMulti;
  // Functions in one link, at most kMaxPerLink. One big link is the cheap
  // form: every link copies what is already attached.
  uint32_t max_per_link = kMaxPerLink;
  // Called before each link with the functions attached so far and in all;
  // false stops, detaches everything, and makes the result Cancelled.
  std::function<bool(uint64_t done, uint64_t total)> progress;
};

// What a link tells about itself.
struct LinkStats {
  uint64_t cnt = 0;     // functions, since Linux 6.6; 0 before
  uint64_t missed = 0;  // hits lost to recursion, since Linux 6.7
};

// Functions attached to, held by their links. Destroying it detaches.
// Movable; const calls are thread-safe.
class Attachment {
 public:
  Kind kind() const { return kind_; }
  const std::vector<Link>& links() const { return links_; }

  // By slot, the index into Resolution::targets(). A slot is a target's number
  // in this attachment, counted over all its links: the cookie of a target if
  // no request has one.
  const std::vector<uint32_t>& targets() const { return targets_; }

  // bpf(2) calls made, and the time in them.
  uint32_t syscalls() const { return syscalls_; }
  int64_t attach_ns() const { return attach_ns_; }

  // Asks the kernel, once per link, and adds up.
  absl::StatusOr<LinkStats> ReadStats() const;

  // Closes all links. Ok if nothing is attached.
  absl::Status Detach();

 private:
  friend class Attacher;

  Kind kind_ = Kind::kKprobeMulti;
  std::vector<Link> links_;
  std::vector<uint32_t> targets_;
  uint32_t syscalls_ = 0;
  int64_t attach_ns_ = 0;
  BpfSys* sys_ = nullptr;  // what the links were made through
};

// Attaches `prog`, loaded, to the targets of `resolution` that fit the kind:
// by address in as few links as possible, or by name if the kernel hides
// addresses. All or nothing: after an error nothing is attached.
//
// Errors keep the errno, see ErrnoOf() in status.h:
// FailedPrecondition  the program was prepared for another kind, is not
//                     loaded, or the resolution was made for other kinds
// InvalidArgument     no target; or the kernel refused the call (EINVAL)
// NotFound            the kernel does not find or trace one of the functions
// Unimplemented       the kernel has no kprobe.multi (CONFIG_FPROBE)
// PermissionDenied, ResourceExhausted, Cancelled
//
// Requires Linux 5.18 (CONFIG_FPROBE). Thread-safe.
absl::StatusOr<Attachment> Attach(const Resolution& resolution,
                                  const bpf_program* prog,
                                  const AttachOptions& options = {});

// The same for a program loaded by other means than libbpf; whether it was
// loaded for the kind is left for the kernel to check.
absl::StatusOr<Attachment> AttachFd(const Resolution& resolution, int prog_fd,
                                    const AttachOptions& options = {});

}  // namespace ksweep

#endif  // KSWEEP_ATTACH_H_
