#include "lib/source/btf_store.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"
#include "lib/source/btf_elf.h"
#include "lib/source/list_file.h"

namespace ksweep {
namespace {

constexpr std::string_view kCoreFile = "vmlinux";

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};

}  // namespace

absl::StatusOr<const Btf*> BtfStore::Get(std::string_view module) {
  auto found = objects_.find(module);
  if (found == objects_.end()) {
    Object object = Load(module);
    if (!object.ok() && absl::IsInvalidArgument(object.status())) {
      object = Annotate(object.status(), files_.BtfPath(module));
    }
    if (shortage_.ok()) shortage_ = ShortageOf(object.status());
    found = objects_.emplace(std::string(module), std::move(object)).first;
  }
  if (!found->second.ok()) return found->second.status();
  return found->second->get();
}

BtfStore::Object BtfStore::Load(std::string_view module) {
  const Btf* base = nullptr;
  if (!module.empty()) {
    absl::StatusOr<const Btf*> core = Get("");
    if (!core.ok()) {
      return Annotate(core.status(),
                      "module BTF goes on where the kernel's "
                      "ends");
    }
    base = *core;
  }
  absl::StatusOr<std::string> bytes = Read(module);
  if (!bytes.ok()) return bytes.status();
  return Btf::Parse(*std::move(bytes), base);
}

absl::StatusOr<std::string> BtfStore::Read(std::string_view module) {
  absl::StatusOr<ListFile> file = ListFile::OpenBtf(files_, module);
  if (!file.ok()) return file.status();
  absl::StatusOr<std::string> bytes = file->ReadAll();
  stats_.push_back(file->stats());
  read_ns_ += file->read_ns();
  if (!bytes.ok() || !IsElf(*bytes)) return bytes;
  return BtfOfElf(*bytes);
}

absl::StatusOr<std::vector<std::string>> BtfStore::ListModules() const {
  std::vector<std::string> modules;
  const std::string path = files_.Path(KernelFile::kBtfDir);
  if (path.empty()) return modules;
  const std::unique_ptr<DIR, CloseDir> dir(opendir(path.c_str()));
  const int err = errno;
  if (dir == nullptr) {
    return ErrnoStatus(err, absl::StrFormat("cannot list %s", path));
  }
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name[0] != '.' && name != kCoreFile) modules.emplace_back(name);
  }
  std::sort(modules.begin(), modules.end());
  return modules;
}

}  // namespace ksweep
