// Which kernel modules came and went.
//
//   ksweep::ModuleWatch watch;
//   while (…) {
//     absl::StatusOr<ksweep::ModuleChanges> changes = watch.Poll();
//     if (changes.ok() && changes->Concern(requests)) {
//       absl::StatusOr<ksweep::Resolution> now = ksweep::Resolve(requests);
//       if (!now.ok()) return now.status();
//       absl::Status status = attachment.Update(*now).status();
//       if (!status.ok()) return status;
//     }
//     sleep(1);
//   }

#ifndef KSWEEP_MODULE_WATCH_H_
#define KSWEEP_MODULE_WATCH_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/kernel_files.h"
#include "ksweep/request.h"

namespace ksweep {

struct ModuleChanges {
  // Names, ascending. A module that was unloaded and loaded again in between is
  // in both.
  std::vector<std::string> loaded;
  std::vector<std::string> gone;

  bool empty() const { return loaded.empty() && gone.empty(); }

  // Whether some request that allows looks into one of the modules: only then
  // another Resolve() of `requests` can find other functions.
  bool Concern(absl::Span<const Request> requests) const;
};

// Remembers what was loaded when it was asked the last time. Not thread-safe.
class ModuleWatch {
 public:
  // proc/modules, and sys/module below the root of `files`.
  explicit ModuleWatch(KernelFiles files = KernelFiles());

  // What changed since the last call; everything that is loaded, the first
  // time. Modules that are still loading or on their way out are not loaded:
  // their functions cannot be attached to.
  //
  // Reads proc/modules, a line for each module, and asks for the inode of one
  // folder for each, which tells a module from the one of the same name and
  // place before. No kallsyms. Errors keep the errno; a kernel without modules
  // (no proc/modules) has none.
  absl::StatusOr<ModuleChanges> Poll();

 private:
  // What tells that a module is the one of before.
  struct Identity {
    uint64_t addr = 0;  // 0 where the kernel hides it
    uint64_t inode = 0;

    friend bool operator==(const Identity&, const Identity&) = default;
  };
  using Modules = std::map<std::string, Identity>;

  absl::StatusOr<Modules> Read() const;
  uint64_t InodeOf(std::string_view module) const;

  KernelFiles files_;
  Modules last_;
};

}  // namespace ksweep

#endif  // KSWEEP_MODULE_WATCH_H_
