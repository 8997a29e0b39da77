// What is attached: links, functions by slot, and what came of it.

#ifndef KSWEEP_ATTACHMENT_H_
#define KSWEEP_ATTACHMENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ksweep/kind.h"
#include "ksweep/link.h"
#include "ksweep/resolve.h"

namespace ksweep {

// What a link tells about itself.
struct LinkStats {
  uint64_t cnt = 0;     // functions, since Linux 6.6; 0 before
  uint64_t missed = 0;  // hits lost to recursion, since Linux 6.7
};

// A function that the kernel refused.
struct RefusedFunction {
  uint32_t slot = 0;
  uint32_t target = 0;  // index into Resolution::targets()
  Kind kind = Kind::kKprobeMulti;
  int err = 0;           // the kernel's errno
  std::string function;  // "vfs_read" or "nft_do_chain [nf_tables]"
  std::string reason;    // what the errno means, for people
};

// What one kind of an attachment came to.
struct KindReport {
  Kind kind = Kind::kKprobeMulti;
  uint64_t attached = 0;  // functions
  uint32_t links = 0;
};

// A kind that was asked for, and that the kernel lacks, or that a preferred one
// stood in the way of; see PreparePrograms().
struct AbsentKind {
  Kind kind = Kind::kKprobeMulti;
  std::string why;       // for people
  uint64_t fitting = 0;  // targets that fit it
};

// What came of making links on several threads, for the kinds with a link for
// each function.
struct ThreadReport {
  uint32_t threads = 0;    // at the same time; 0: no such kind
  uint64_t links = 0;      // made, without what was refused
  int64_t wall_ns = 0;     // from the first to the last
  int64_t sum_ns = 0;      // of the times that each took
  int64_t fastest_ns = 0;  // the shortest of these

  // How many times as fast as one after the other, reckoned with the fastest
  // for each. `sum_ns` cannot tell: behind a lock every call takes longer by
  // the number of threads. 0 without links.
  double Gain() const;
  // True if several threads were no use, as the kernel lets one wait after the
  // other. With less than four links for each thread it is not known: false.
  bool Serialized() const;
};

// What an attach came to.
struct AttachReport {
  Kind kind = Kind::kKprobeMulti;  // the first of `kinds`
  std::vector<KindReport> kinds;   // in the order of attaching
  std::vector<AbsentKind> absent;  // see PreparePrograms()
  uint64_t attached = 0;           // functions, whatever the number of kinds
  std::vector<RefusedFunction> refused;
  uint32_t links = 0;
  uint32_t syscalls = 0;
  // Time in Resolve(), in choosing and arranging the functions, in system
  // calls, and of the attach as a whole.
  int64_t resolve_ns = 0;
  int64_t select_ns = 0;
  int64_t attach_ns = 0;
  int64_t total_ns = 0;
  ThreadReport on_threads;

  // A line, one for the times, one for threads if there were several, and one
  // for each refused function, at most ten.
  // With several kinds, or absent ones, also a line for each.
  std::string ToString() const;
};

// Of a slot without a function: Attachment::Update() or Release() dropped it.
inline constexpr uint32_t kNoTarget = UINT32_MAX;

struct UpdateOptions {
  // Tries again what was refused before. A function that is accepted now has
  // the slot that it always had.
  bool retry_refused = false;
  // Fails before any call if there would be more slots, as when the program
  // looks them up in a map of that size. 0: no limit.
  uint32_t max_slots = 0;
  // Sets AttachOptions::ready to false meanwhile: nothing is counted twice, but
  // for a while nothing at all. Needs AttachOptions::ready.
  bool pause = false;
  // As AttachOptions::progress, of the functions that links are made for. When
  // it stops the update, the attachment is as before.
  std::function<bool(uint64_t done, uint64_t total)> progress;
};

// What an update came to. Functions are counted by slot.
struct UpdateReport {
  uint64_t added = 0;
  uint64_t dropped = 0;
  uint64_t kept = 0;
  uint64_t recookied = 0;  // of the kept ones: have another cookie now
  std::vector<RefusedFunction> refused;  // in this update
  uint32_t links_made = 0;
  uint32_t links_closed = 0;
  // Kept functions that were attached by two links for a moment, in which a
  // call runs the program twice.
  uint64_t doubled = 0;
  // Kept functions that were not attached for a moment, and the longest such
  // time.
  uint64_t interrupted = 0;
  int64_t gap_ns = 0;
  uint32_t syscalls = 0;  // to make links, and the time in them
  int64_t attach_ns = 0;
  int64_t total_ns = 0;

  // A line, one for each of doubled and interrupted functions, and one for each
  // refused one, at most ten.
  std::string ToString() const;
};

// What the kernel says is attached, compared with what was asked for.
struct ReadBackReport {
  struct Unasked {
    uint64_t addr = 0;
    uint64_t cookie = 0;
    uint32_t link = 0;  // index into Attachment::links()
  };
  struct WrongCookie {
    uint32_t slot = 0;
    uint64_t cookie = 0;  // the kernel's
    uint64_t wanted = 0;
  };

  uint64_t cnt = 0;     // functions, once for each link; since Linux 6.6
  uint64_t missed = 0;  // hits lost to recursion, since Linux 6.7

  // Links whose functions could not be compared: the kernel does not tell them
  // (before Linux 6.6; addresses also under kernel.kptr_restrict).
  uint32_t untold_links = 0;
  bool cookies_told = true;  // by all links that were compared

  // Attached slots that a link does not have, ascending.
  std::vector<uint32_t> absent;
  std::vector<Unasked> unasked;
  std::vector<WrongCookie> wrong_cookies;

  // True if nothing differs in what could be compared.
  bool matches() const {
    return absent.empty() && unasked.empty() && wrong_cookies.empty();
  }

  // A line, and one for each difference, at most ten.
  std::string ToString() const;
};

struct AttachmentState;
struct AttachOptions;

// Functions attached to, held by their links. Destroying it detaches, but for
// what is pinned.
// Movable; const calls are thread-safe.
class Attachment {
 public:
  // Nothing attached.
  Attachment();
  explicit Attachment(std::unique_ptr<AttachmentState> state);
  // The moved-from one has nothing attached.
  Attachment(Attachment&& other) noexcept;
  Attachment& operator=(Attachment&& other) noexcept;
  ~Attachment();

  // The first, if programs of several kinds were attached.
  Kind kind() const;
  const std::vector<Link>& links() const;
  const Resolution& resolution() const;

  // By slot, the index into resolution().targets(), kNoTarget for a function
  // that was dropped. A slot is a target's number
  // in this attachment, counted over all its links: the cookie of a target if
  // no request has one. Slots are given before the first call and never change:
  // a refused function keeps its slot, which no hit will ever bring.
  const std::vector<uint32_t>& targets() const;

  // By slot, ascending. Empty unless AttachOptions::on_refused lets functions
  // be skipped.
  const std::vector<RefusedFunction>& refused() const;

  // Whether the slot's function is attached. O(1).
  bool IsAttached(uint32_t slot) const;

  // System calls made for attaching, and the time in them.
  uint32_t syscalls() const;
  int64_t attach_ns() const;

  // What was made, also after Detach().
  AttachReport Report() const;

  // Asks the kernel, once per link, and adds up.
  absl::StatusOr<LinkStats> ReadStats() const;

  // Makes it an attachment to the targets of `newer`, resolved for the same
  // kinds, by changing what differs; links of a module without a difference
  // cost no system call. Functions that are the same, see Diff() in diff.h,
  // keep their slots, others get new ones behind the last: slots are never used
  // again. resolution() is `newer` from then on.
  //
  // A link cannot be changed. New functions get new links. Where a link loses
  // some of its functions, or their cookies change, the others are attached in
  // a new link, and then the old one is closed; so they are hit twice for a
  // moment. With the kinds of tracing.multi the kernel wants the old one closed
  // first, which leaves a gap. UpdateReport says how many that were.
  //
  // A link holds the modules of its functions, which cannot be unloaded; single
  // kprobes (kKprobe, kKretprobe) do not. Their module can go, and they with it
  // without a word, so Release() it when it disappears, see module_watch.h:
  // loaded again at the same place its functions look like those of before, and
  // an update would take them for attached.
  //
  // What is refused is treated as AttachOptions::on_refused says, in each
  // update by itself; what was refused before stays so, see UpdateOptions.
  //
  // After an error the attachment is as before. FailedPrecondition without
  // AttachOptions::updatable, after Detach(), while it is pinned, or if `newer`
  // is for other kinds; ResourceExhausted beyond UpdateOptions::max_slots; and
  // those of Attach().
  absl::StatusOr<UpdateReport> Update(const Resolution& newer,
                                      const UpdateOptions& options = {});

  // Closes the links to functions of `module`, which cannot be unloaded before
  // (rmmod says EAGAIN), and drops their slots. resolution() stays as it is: an
  // update to it would attach them again.
  //
  // NotFound if it has no functions of the module; FailedPrecondition as
  // Update(); InvalidArgument for "", the core kernel.
  absl::StatusOr<UpdateReport> Release(std::string_view module);

  // Asks the kernel for the functions and cookies of every link, and compares.
  // Two or three calls for a link, and memory for its functions. Errors keep
  // the errno.
  absl::StatusOr<ReadBackReport> ReadBack() const;

  // Pins every link below `dir`, a folder on a BPF file system (as
  // /sys/fs/bpf/mytool) that is made, or is there and empty. From then on the
  // functions stay attached when this object or the process ends; see
  // TakeOver(). After an error nothing is pinned.
  //
  // FailedPrecondition if it is pinned already, or holds a perf event without
  // link (before Linux 5.15); AlreadyExists for a folder with something in it;
  // PermissionDenied, with the remedy, where `dir` is on another file system.
  absl::Status Pin(const std::string& dir);

  // Removes the pins, and the folder: it stays attached by this object alone.
  // Ok if nothing is pinned.
  absl::Status Unpin();

  // The folder of the pins; empty if nothing is pinned.
  const std::string& pin_dir() const;

  // Takes over what Pin() left in `dir`, also that of an earlier process. The
  // slots are those of before if cookies were slots; else by link and address.
  // `resolution` gives functions their names: those in it that are attached
  // are targets, others have a slot without target and show in ReadBack().
  //
  // Of `options` only `ready` and `updatable` have effect. The latter needs
  // CAP_SYS_ADMIN, for descriptors of the programs.
  //
  // NotFound if there is nothing; FailedPrecondition if the kernel does not
  // tell the functions of a link (before Linux 6.6 or under kptr_restrict), or
  // if `resolution` is by name; Unimplemented for fentry, fexit and fsession,
  // whose links do not tell the address.
  static absl::StatusOr<Attachment> TakeOver(const std::string& dir,
                                             const Resolution& resolution,
                                             const AttachOptions& options);

  // Removes pins and closes all links. Ok if nothing is attached.
  absl::Status Detach();

 private:
  std::unique_ptr<AttachmentState> state_;  // never null
};

}  // namespace ksweep

#endif  // KSWEEP_ATTACHMENT_H_
