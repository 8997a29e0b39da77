// Where the kernel's lists are read from.

#ifndef KSWEEP_KERNEL_FILES_H_
#define KSWEEP_KERNEL_FILES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ksweep {

enum class KernelFile : uint8_t {
  kKallsyms,              // proc/kallsyms
  kKptrRestrict,          // proc/sys/kernel/kptr_restrict
  kFilterFunctions,       // sys/kernel/tracing/available_filter_functions
  kFilterFunctionsAddrs,  // … available_filter_functions_addrs, Linux 6.5
  kBlacklist,             // sys/kernel/debug/kprobes/blacklist
  kLockdown,              // sys/kernel/security/lockdown
  kBtfDir,                // sys/kernel/btf, a folder: one file per object
  kNotes,                 // sys/kernel/notes: the build id
  kBootId,                // proc/sys/kernel/random/boot_id
  kModules,               // proc/modules
};

inline constexpr int kKernelFileCnt = 10;

// The path of a kernel file below a root, without a leading slash.
std::string_view KernelFilePath(KernelFile file);

// Names the kernel lists that everything else reads. The root can be any
// folder: "/" for the running kernel, a copied tree for a bug report from the
// field, a made-up one for a test. A value; opens nothing by itself.
//
// Lists below sys/kernel/tracing are also looked for below
// sys/kernel/debug/tracing, the older mount point, if and only if they do not
// exist at the first.
//
// Thread-safe for concurrent reads, as a value is.
class KernelFiles {
 public:
  // The lists of the running kernel.
  KernelFiles() : KernelFiles("/") {}

  // The lists below `root`.
  explicit KernelFiles(std::string root);

  // Reads `file` from `path` instead of from below the root.
  KernelFiles& Override(KernelFile file, std::string path);

  // Treats `file` as if it did not exist.
  KernelFiles& Disable(KernelFile file);

  const std::string& root() const { return root_; }

  // The path tried first, and the one tried if the first does not exist (empty
  // if there is none). Both are empty for a disabled file.
  std::string Path(KernelFile file) const;
  std::string FallbackPath(KernelFile file) const;

  // The path of the BTF of a module, or of the core kernel if `module` is
  // empty; empty if kBtfDir is disabled.
  std::string BtfPath(std::string_view module) const;

  // True for a file that Override() or Disable() was called for.
  bool IsOverridden(KernelFile file) const {
    return OverrideOf(file).has_value();
  }

 private:
  const std::optional<std::string>& OverrideOf(KernelFile file) const {
    return overrides_[static_cast<size_t>(file)];
  }

  std::string root_;
  // Empty text: disabled. No value: below the root.
  std::array<std::optional<std::string>, kKernelFileCnt> overrides_;
};

// What was done to one of the files.
struct FileStats {
  std::string path;  // below the root, or as given by an override
  uint32_t opens = 0;
  uint32_t passes = 0;  // times read from the start
  uint64_t reads = 0;
  uint64_t bytes = 0;
};

}  // namespace ksweep

#endif  // KSWEEP_KERNEL_FILES_H_
