// One way of making links, whatever the kind.

#ifndef KSWEEP_LIB_ATTACH_KINDS_LINK_FACTORY_H_
#define KSWEEP_LIB_ATTACH_KINDS_LINK_FACTORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/attach.h"
#include "ksweep/kernel_files.h"
#include "ksweep/link.h"
#include "lib/attach/attachment_state.h"
#include "lib/attach/linking/isolate.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/perf_sys.h"

namespace ksweep {

// A function as a link is made to it.
struct AttachPoint {
  uint64_t addr = 0;
  std::string_view name;  // used if by_name
  std::string_view module;
  uint64_t cookie = 0;
  uint32_t btf_id = 0;
  bool by_name = false;  // the same for all points of a link
};

// What the functions of a link have in common, for kinds that LinksByOwner().
struct LinkOwner {
  std::string_view module;  // empty: the core kernel, or of no matter
  uint32_t rank = 0;        // which of the cookies of its functions
};

// Makes links for one program. Not thread-safe, but see is_parallel().
class LinkFactory {
 public:
  virtual ~LinkFactory() = default;

  // Before the first link: whether so many functions can be attached at all.
  virtual absl::Status Reserve(size_t cnt) {
    (void)cnt;
    return absl::OkStatus();
  }

  // Before links to functions of `owner`. NotFound if its module is gone: then
  // none of its functions can be attached to, which is not the call's fault.
  virtual absl::Status Open(const LinkOwner& owner) {
    (void)owner;
    return absl::OkStatus();
  }

  // The most functions of one link.
  virtual size_t max_per_link() const = 0;

  // True if a link is for one function, and MakeLink() may be called by several
  // threads at once, which is worth it.
  virtual bool is_parallel() const { return false; }

  // One link to all of `points`, which is not empty. All or nothing; an error
  // keeps the kernel's errno, see FaultOf().
  virtual absl::StatusOr<Link> MakeLink(
      absl::Span<const AttachPoint> points) = 0;

  // Whether a refusal with `err` may be about one of the functions.
  virtual Fault FaultOf(int err) const { return ksweep::FaultOf(err); }

  // What `err` means for one function, when it is known that others are
  // accepted.
  virtual std::string FunctionRefusal(int err) const = 0;
};

// The doors to the kernel, and where its files are. All outlive the links.
struct LinkSystem {
  BpfSys& bpf;
  PerfSys& perf;
  const KernelFiles& files;
};

// The factory for `program`, which has to outlive it.
std::unique_ptr<LinkFactory> MakeLinkFactory(const LinkSystem& system,
                                             const AttachedProgram& program,
                                             const AttachOptions& options);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_KINDS_LINK_FACTORY_H_
