#include "ksweep/module_watch.h"

#include <sys/stat.h>

#include <utility>

#include "absl/status/status.h"
#include "lib/source/list_file.h"
#include "lib/source/modules.h"

namespace ksweep {

bool ModuleChanges::Concern(absl::Span<const Request> requests) const {
  for (const Request& request : requests) {
    if (request.deny()) continue;
    for (const std::vector<std::string>* names : {&loaded, &gone}) {
      for (const std::string& name : *names) {
        if (request.owner().Matches(name)) return true;
      }
    }
  }
  return false;
}

ModuleWatch::ModuleWatch(KernelFiles files) : files_(std::move(files)) {}

uint64_t ModuleWatch::InodeOf(std::string_view module) const {
  std::string path = files_.root();
  path += "/sys/module/";
  path += module;
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

absl::StatusOr<ModuleWatch::Modules> ModuleWatch::Read() const {
  Modules modules;
  const absl::StatusOr<std::string> text =
      ReadSmallFile(files_, KernelFile::kModules);
  if (absl::IsNotFound(text.status())) return modules;
  if (!text.ok()) return text.status();
  for (LoadedModule& module : ParseModules(*text)) {
    const Identity identity = {module.addr, InodeOf(module.name)};
    modules.emplace(std::move(module.name), identity);
  }
  return modules;
}

absl::StatusOr<ModuleChanges> ModuleWatch::Poll() {
  absl::StatusOr<Modules> now = Read();
  if (!now.ok()) return now.status();
  ModuleChanges changes;
  for (const auto& [name, identity] : *now) {
    const auto before = last_.find(name);
    if (before == last_.end() || before->second != identity) {
      changes.loaded.push_back(name);
    }
  }
  for (const auto& [name, identity] : last_) {
    const auto after = now->find(name);
    if (after == now->end() || after->second != identity) {
      changes.gone.push_back(name);
    }
  }
  last_ = *std::move(now);
  return changes;
}

}  // namespace ksweep
