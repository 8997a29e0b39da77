#include "ksweep/kernel_files.h"

#include <utility>

namespace ksweep {
namespace {

struct Place {
  std::string_view path;
  std::string_view fallback;
};

constexpr std::array<Place, kKernelFileCnt> kPlaces = {{
    {"proc/kallsyms", ""},
    {"proc/sys/kernel/kptr_restrict", ""},
    {"sys/kernel/tracing/available_filter_functions",
     "sys/kernel/debug/tracing/available_filter_functions"},
    {"sys/kernel/tracing/available_filter_functions_addrs",
     "sys/kernel/debug/tracing/available_filter_functions_addrs"},
    {"sys/kernel/debug/kprobes/blacklist", ""},
    {"sys/kernel/security/lockdown", ""},
    {"sys/kernel/btf", ""},
    {"sys/kernel/notes", ""},
    {"proc/sys/kernel/random/boot_id", ""},
    {"proc/modules", ""},
}};

const Place& PlaceOf(KernelFile file) {
  return kPlaces[static_cast<size_t>(file)];
}

std::string Below(const std::string& root, std::string_view path) {
  std::string joined = root;
  if (joined.empty() || joined.back() != '/') joined += '/';
  joined += path;
  return joined;
}

}  // namespace

std::string_view KernelFilePath(KernelFile file) { return PlaceOf(file).path; }

KernelFiles::KernelFiles(std::string root)
    : root_(root.empty() ? std::string(1, '.') : std::move(root)) {}

KernelFiles& KernelFiles::Override(KernelFile file, std::string path) {
  overrides_[static_cast<size_t>(file)] = std::move(path);
  return *this;
}

KernelFiles& KernelFiles::Disable(KernelFile file) {
  return Override(file, "");
}

std::string KernelFiles::Path(KernelFile file) const {
  if (OverrideOf(file).has_value()) return *OverrideOf(file);
  return Below(root_, PlaceOf(file).path);
}

std::string KernelFiles::FallbackPath(KernelFile file) const {
  if (OverrideOf(file).has_value() || PlaceOf(file).fallback.empty()) return "";
  return Below(root_, PlaceOf(file).fallback);
}

std::string KernelFiles::BtfPath(std::string_view module) const {
  const std::string folder = Path(KernelFile::kBtfDir);
  if (folder.empty()) return "";
  return Below(folder, module.empty() ? "vmlinux" : module);
}

}  // namespace ksweep
