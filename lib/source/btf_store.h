// BTF objects, opened when they are first asked for.

#ifndef KSWEEP_LIB_SOURCE_BTF_STORE_H_
#define KSWEEP_LIB_SOURCE_BTF_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ksweep/kernel_files.h"
#include "lib/source/btf.h"

namespace ksweep {

// Each object is read once, whole, raw or out of an ELF file, and kept. What is
// wrong with one is its own error, given again at each call. Not thread-safe.
class BtfStore {
 public:
  // `files` outlives it.
  explicit BtfStore(const KernelFiles& files) : files_(files) {}

  // The BTF of `module`; empty: of the core kernel. Lives as long as this. A
  // module's takes the core's, too, as its base. NotFound or PermissionDenied
  // if it cannot be read, InvalidArgument if it is damaged.
  absl::StatusOr<const Btf*> Get(std::string_view module);

  // The error of the first object that could not be read for what this process
  // lacks, see ShortageOf(); Ok: there is none.
  const absl::Status& shortage() const { return shortage_; }

  // The modules that have BTF, ascending. Opens none.
  absl::StatusOr<std::vector<std::string>> ListModules() const;

  // What was read so far.
  const std::vector<FileStats>& stats() const { return stats_; }
  int64_t read_ns() const { return read_ns_; }

 private:
  using Object = absl::StatusOr<std::unique_ptr<Btf>>;

  Object Load(std::string_view module);
  absl::StatusOr<std::string> Read(std::string_view module);

  const KernelFiles& files_;
  std::map<std::string, Object, std::less<>> objects_;
  absl::Status shortage_;
  std::vector<FileStats> stats_;
  int64_t read_ns_ = 0;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_BTF_STORE_H_
