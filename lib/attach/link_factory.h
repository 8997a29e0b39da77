// One way of making links, whatever the kind.

#ifndef KSWEEP_LIB_ATTACH_LINK_FACTORY_H_
#define KSWEEP_LIB_ATTACH_LINK_FACTORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/attach.h"
#include "ksweep/link.h"
#include "lib/base/bpf_sys.h"

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

// Makes links for one program. Not thread-safe.
class LinkFactory {
 public:
  virtual ~LinkFactory() = default;

  // Before the first link: whether so many functions can be attached at all.
  virtual absl::Status Reserve(size_t cnt) {
    (void)cnt;
    return absl::OkStatus();
  }

  // The most functions of one link.
  virtual size_t max_per_link() const = 0;

  // One link to all of `points`, which is not empty. All or nothing; an error
  // keeps the kernel's errno, see FaultOf().
  virtual absl::StatusOr<Link> MakeLink(
      absl::Span<const AttachPoint> points) = 0;

  // What `err` means for one function, when it is known that others are
  // accepted.
  virtual std::string FunctionRefusal(int err) const = 0;
};

// The factory for a program of `kind`. Unimplemented, with the kinds that there
// are, for one that this version cannot attach.
absl::StatusOr<std::unique_ptr<LinkFactory>> MakeLinkFactory(
    BpfSys& sys, Kind kind, int prog_fd, const AttachOptions& options);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LINK_FACTORY_H_
