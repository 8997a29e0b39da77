// From requests to functions: which there are, where, and which the kernel
// will really let a program attach to.
//
//   absl::StatusOr<ksweep::Request> glob = ksweep::Request::Parse("vfs_*");
//   if (!glob.ok()) return glob.status();
//   absl::StatusOr<ksweep::Resolution> r = ksweep::Resolve({*glob});
//   if (!r.ok()) return r.status();
//   for (const ksweep::Target& t : r->targets()) { … t.addr, t.name … }
//   for (const ksweep::Omission& o : r->omissions()) { … o.reason … }
//
// Resolving attaches nothing and changes nothing.

#ifndef KSWEEP_RESOLVE_H_
#define KSWEEP_RESOLVE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/kernel_files.h"
#include "ksweep/kind.h"
#include "ksweep/request.h"

namespace ksweep {

class SymbolIndex;

// Why a function is left out, or a request has no target. The names are
// stable, see ReasonName().
enum class Reason : uint8_t {
  kNotFound,         // no symbol of that name; candidates: its clones
  kModuleNotLoaded,  // no symbol has that owner
  kAmbiguous,        // several functions where exactly one was demanded, or
                     // can be told apart (BTF kinds, see Target::btf_id)
  kNotTraceable,     // not in the kernel's filter list, or outside its text
  kUndecidable,      // a list without addresses has fewer copies than kallsyms
  kBlacklisted,      // on the kprobe blacklist (perf kprobes only), or one of
                     // the few functions without trampolines (BTF kinds)
  kDenied,           // by a deny request
  kDefaultDenied,    // by the built-in deny list
  kInitSection,      // freed after boot
  kNoBtf,            // no BTF of the kernel, or no FUNC of that name in it
  kNoModuleBtf,      // no BTF of the module, or a damaged one
  kNoSuchBtfId,      // that id is not a FUNC of that object
  kUnsupportedPrototype,  // a trampoline cannot pass its arguments on
  kNoReturn,              // never returns (fexit and fsession)
  kAddressesHidden,       // needs an address that the kernel does not show
  kNotAFunction,          // data, a `__pfx_` pad, a cold half, …
  kCookieConflict,        // two requests with different cookies
  kRefusedByKernel,       // by the attach call
};

// "NotFound", …: the enumerator without its k.
std::string_view ReasonName(Reason reason);

// A kind that was asked for and that a function does not fit.
struct Misfit {
  Kind kind = Kind::kKprobeMulti;
  Reason reason = Reason::kNotTraceable;
  std::string_view detail;
};

// One function at one address that can be attached. All views and spans live
// as long as the Resolution they come from or any copy of it.
struct Target {
  // Start of the function; 0 if the resolution is by name.
  uint64_t addr = 0;
  // What bpf_get_attach_cookie() will return. If no request has a cookie: the
  // index in targets(), and once attached the slot, which is the same if all
  // targets fit the kind (see Attachment::targets()). Else the request's
  // cookie, or 0 for a target whose requests have none.
  uint64_t cookie = 0;
  // With CookieConflicts::kSplitLinks the other cookies, ascending: the target
  // is attached once for each.
  absl::Span<const uint64_t> more_cookies;
  // The exactly requested name, else T before W and w before t, then the
  // shorter, then the bytewise lower; the rest are aliases, in that order.
  std::string_view name;
  std::string_view module;  // empty: the core kernel
  absl::Span<const std::string_view> aliases;
  // Indices into Resolution::requests(), ascending.
  absl::Span<const uint32_t> requests;
  // The asked kinds that it fits, and the others with the reason.
  KindSet kinds;
  absl::Span<const Misfit> misfits;
  // Of the FUNC that has its name or one of its aliases, in the BTF of
  // `module`; empty: of the core kernel. Known if it may fit a kind that needs
  // BTF, or a BTF request found it; else 0. The kernel goes from the id to the
  // name and from there to the first address, so what fits such a kind is the
  // only function of that name and owner.
  uint32_t btf_id = 0;
  char type = '?';  // '?' where only the filter list tells of it
  // Matched only as `name.isra.0` or the like: its parameters may differ.
  bool clone = false;
  // No list said that the kernel accepts it.
  bool untested = false;
};

// A function that matched and is left out.
struct Omission {
  uint64_t addr = 0;
  std::string_view name;
  std::string_view module;
  Reason reason = Reason::kNotTraceable;
  std::string_view detail;  // for people; may be empty
  uint32_t request = 0;     // the first request it matched
};

// A request that serves no target.
struct Unmatched {
  uint32_t request = 0;
  Reason reason = Reason::kNotFound;
  std::string_view detail;
  absl::Span<const std::string_view> candidates;  // names, ascending
};

// A line of the filter list, asked for by some request, that belongs to no
// symbol of that name: the lists are not of one kernel, or kallsyms is partial.
// Looked for as far as the list is read: not among modules if none has a match.
struct Unjoined {
  uint64_t location = 0;
  std::string_view name;
  std::string_view module;
};

enum class AddressState : uint8_t {
  kFull,     // every function has its address
  kPartial,  // some functions show address 0
  kHidden,   // all do: kernel.kptr_restrict, or not privileged
};

enum class ListState : uint8_t {
  kNotNeeded,  // not opened
  kAddresses,  // with ftrace locations: exact for each instance
  kNames,      // names only: decided by counting
  kMissing,    // absent or unreadable, see ResolveStats::notes
};

struct ResolveStats {
  AddressState addresses = AddressState::kFull;
  ListState filter_list = ListState::kNotNeeded;
  ListState blacklist = ListState::kNotNeeded;  // kAddresses when it was used
  uint64_t lines = 0;                           // of kallsyms
  uint64_t malformed = 0;
  std::vector<uint64_t> malformed_lines;  // the first 100, from 1
  std::vector<FileStats> files;           // those opened
  std::vector<Unjoined> unjoined;
  std::vector<std::string> notes;  // fallbacks taken and why, for people
  // Time inside read(2), in the sweep, in the join, with BTF, and of all.
  int64_t read_ns = 0;
  int64_t match_ns = 0;
  int64_t join_ns = 0;
  int64_t btf_ns = 0;
  int64_t total_ns = 0;
};

enum class OnMissing : uint8_t {
  // An exact request without a target (other than Denied) fails the whole.
  kFail,
  // It is reported in unmatched().
  kReport,
};

// What becomes of a function that requests with different cookies match.
// Requests without a cookie have no say, whatever the policy.
enum class CookieConflicts : uint8_t {
  // It is left out as CookieConflict, which names two of the requests.
  kReport,
  // The cookie of the first such request. The one case in which the order of
  // the requests matters.
  kFirstWins,
  // The cookie of exact requests, for they mean this function; CookieConflict
  // if these do not agree, or if there are none and globs do not agree.
  kExactBeatsGlob,
  // All of them: attached once for each cookie, see Target::more_cookies, as
  // many links as the function with the most cookies has, and as many hits.
  kSplitLinks,
};

enum class Untested : uint8_t {
  // Without any filter list, globs and predicates fail.
  kRefuse,
  // They are tried; AttachOptions::on_refused says what becomes of the others
  // if one is refused.
  kTry,
};

// A function that globs and predicates leave out unless told otherwise.
struct DefaultDeny {
  std::string_view pattern;
  std::string_view reason;
};

// Functions on the path of tracing itself. Attaching to them works, and makes
// every system call several times slower.
absl::Span<const DefaultDeny> DefaultDenyList();

// What BPF trampolines can pass on, which depends on kernel and architecture.
// The defaults are those of a current x86-64 kernel.
struct TraceLimits {
  // Arguments, of which one of more than 8 bytes counts as two. Linux 6.7 on
  // x86-64; 6 before.
  uint32_t max_args = 12;
  // A struct of up to 16 bytes by value. Linux 6.0 on x86-64.
  bool struct_args = true;
  // A union, for the kinds with one program per function. Linux 6.18.
  bool union_args = false;
};

struct ResolveOptions {
  // How the targets will be attached. A target fits at least one of them.
  KindSet kinds = {Kind::kKprobeMulti};
  OnMissing missing = OnMissing::kFail;
  Untested untested = Untested::kRefuse;
  CookieConflicts cookie_conflicts = CookieConflicts::kReport;
  // Exact `f` also takes the compiler's copies f.isra.N, f.constprop.N,
  // f.part.N, f.lto_priv.N and f.<hash>.
  bool clones = false;
  // Whether, and by which list, globs skip functions. Exact names, addresses
  // and system calls are never skipped. The list is not copied.
  bool default_deny = true;
  absl::Span<const DefaultDeny> default_deny_list = DefaultDenyList();
  // More targets than this fail, with the count. 0: no limit.
  uint64_t max_targets = 0;
  // For the kinds that need BTF.
  TraceLimits limits;
  // End the sweep once every exact name was seen: faster, but later instances
  // of the same names are not found. Has no effect with globs, predicates,
  // addresses, BTF or clones.
  bool stop_early = false;
  // Takes the symbols from here instead of reading kallsyms, with the same
  // answers; a few times faster. It has to be of the kernel of `files` as that
  // is now (see SymbolIndex::Open() and WithModules()), which is not checked
  // again. Without a part for modules it is not used, and a note says so. Not
  // owned.
  const SymbolIndex* index = nullptr;
};

// The answer to a set of requests. A value that never changes; copies are cheap
// and share everything. Thread-safe for concurrent const calls.
class Resolution {
 public:
  // Nothing asked, nothing found.
  Resolution();
  // Copied also when moved, so that none is ever without data.
  Resolution(const Resolution&) = default;
  Resolution& operator=(const Resolution&) = default;

  // In address order; by owner and name if by_name().
  const std::vector<Target>& targets() const { return data_->targets; }
  // In order of address, owner, name.
  const std::vector<Omission>& omissions() const { return data_->omissions; }
  // In order of request.
  const std::vector<Unmatched>& unmatched() const { return data_->unmatched; }
  const ResolveStats& stats() const { return data_->stats; }
  const std::vector<Request>& requests() const { return data_->requests; }
  KindSet kinds() const { return data_->kinds; }

  // True if the targets have no addresses and have to be attached by name.
  bool by_name() const { return data_->by_name; }
  // True if some request has a cookie.
  bool has_cookies() const { return data_->has_cookies; }

  // Indices of the targets that request `index` serves, ascending. O(targets).
  std::vector<uint32_t> ForRequest(size_t index) const;

  // The target whose entry `ip` is: its start, or what a probe reports for it
  // (the start plus a landing pad or a breakpoint, at most 15 bytes further).
  // NotFound if there is none, FailedPrecondition if by_name(). O(log targets).
  absl::StatusOr<const Target*> FindByIp(uint64_t ip) const;

  // The error that OnMissing::kFail makes of unmatched(); Ok if there is none.
  absl::Status CheckMissing() const;

 private:
  friend class ResolutionBuilder;

  struct Data {
    std::shared_ptr<const void> text;  // keeps the views alive
    std::vector<Request> requests;
    std::vector<Target> targets;
    std::vector<Omission> omissions;
    std::vector<Unmatched> unmatched;
    ResolveStats stats;
    KindSet kinds;
    bool by_name = false;
    bool has_cookies = false;
  };

  explicit Resolution(std::shared_ptr<const Data> data)
      : data_(std::move(data)) {}

  std::shared_ptr<const Data> data_;  // never null
};

// Finds the functions for `requests` in one pass over kallsyms and, where the
// kinds need it, one over the kernel's filter list. BTF is read only for the
// kinds and requests that need it, and only of the modules concerned (for
// `takes:` of all).
//
// The result does not depend on the order of the requests or of the lines.
//
// Cost: O(symbols · log requests); a binary search whose first steps are one
// table look-up, so that up to ten thousand names cost a few percent of
// reading the text. Memory for the requests and the matches, not for the
// kernel. On a current kernel about 30 ms, most of it inside read(2).
//
// Errors: InvalidArgument for a request that cannot be used; NotFound or
// PermissionDenied if kallsyms cannot be read, or the filter list cannot be and
// a glob needs it, with the sysctl, mount or lockdown state that explains it;
// NotFound for an exact request without target, unless
// OnMissing::kReport; ResourceExhausted beyond max_targets, and if this process
// has no descriptor or memory left to read a list that may well be there.
//
// Thread-safe; no global state.
absl::StatusOr<Resolution> Resolve(std::vector<Request> requests,
                                   const KernelFiles& files = KernelFiles(),
                                   const ResolveOptions& options = {});

}  // namespace ksweep

#endif  // KSWEEP_RESOLVE_H_
