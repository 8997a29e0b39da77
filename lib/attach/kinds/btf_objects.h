// The BTF objects of modules, as the kernel holds them.

#ifndef KSWEEP_LIB_ATTACH_KINDS_BTF_OBJECTS_H_
#define KSWEEP_LIB_ATTACH_KINDS_BTF_OBJECTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/unique_fd.h"

namespace ksweep {

// Opens them by module name. The first time it asks for the name of every BTF
// object in the kernel, those of loaded BPF programs included: three calls for
// each. Not thread-safe.
class BtfObjects {
 public:
  // `sys` has to outlive it.
  explicit BtfObjects(BpfSys& sys) : sys_(sys) {}

  // A descriptor, this object's. NotFound (ENOENT) if there is no such module,
  // or if it has no BTF.
  absl::StatusOr<int> Open(std::string_view module);

 private:
  absl::Status List();
  absl::StatusOr<UniqueFd> OpenId(uint32_t id);

  BpfSys& sys_;
  bool listed_ = false;
  std::map<std::string, uint32_t, std::less<>> ids_;  // by module
  std::map<std::string, UniqueFd, std::less<>> open_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_KINDS_BTF_OBJECTS_H_
