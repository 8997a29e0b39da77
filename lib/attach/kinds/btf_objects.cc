#include "lib/attach/kinds/btf_objects.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

// MODULE_NAME_LEN is 64 - sizeof(long).
constexpr size_t kNameBytes = 64;

// A BTF object of a module has a name, one of a BPF program has none.
absl::StatusOr<std::string> ReadName(BpfSys& sys, const UniqueFd& object) {
  char name[kNameBytes] = {};
  BtfInfo info;
  info.name = reinterpret_cast<uintptr_t>(name);
  info.name_len = sizeof(name);
  ObjInfoAttr attr;
  attr.bpf_fd = static_cast<uint32_t>(object.get());
  attr.info_len = sizeof(info);
  attr.info = reinterpret_cast<uintptr_t>(&info);
  const int result = sys.Bpf(kBpfObjGetInfoByFd, &attr, sizeof(attr));
  if (result < 0) return ErrnoStatus(-result, "asking a BTF object its name");
  if (info.kernel_btf == 0) return std::string();
  return std::string(name);
}

}  // namespace

absl::StatusOr<UniqueFd> BtfObjects::OpenId(uint32_t id) {
  IdAttr attr;
  attr.id = id;
  const int result = sys_.Bpf(kBpfBtfGetFdById, &attr, sizeof(attr));
  if (result >= 0) return UniqueFd(result);
  return ErrnoStatus(-result, absl::StrFormat("opening BTF object %d", id));
}

absl::Status BtfObjects::List() {
  IdAttr attr;
  while (true) {
    const int result = sys_.Bpf(kBpfBtfGetNextId, &attr, sizeof(attr));
    if (result == -ENOENT) return absl::OkStatus();
    if (result < 0) {
      return ErrnoStatus(-result,
                         "looking for the BTF of a module among the kernel's "
                         "BTF objects, which takes CAP_SYS_ADMIN");
    }
    attr.id = attr.next_id;
    const absl::StatusOr<UniqueFd> object = OpenId(attr.id);
    if (ErrnoOf(object.status()) == ENOENT) continue;  // gone meanwhile
    if (!object.ok()) return object.status();
    absl::StatusOr<std::string> name = ReadName(sys_, *object);
    if (!name.ok()) return name.status();
    if (!name->empty()) ids_[*std::move(name)] = attr.id;
  }
}

absl::StatusOr<int> BtfObjects::Open(std::string_view module) {
  const auto open = open_.find(module);
  if (open != open_.end()) return open->second.get();
  if (!listed_) {
    const absl::Status status = List();
    if (!status.ok()) return status;
    listed_ = true;
  }
  const auto id = ids_.find(module);
  if (id == ids_.end()) {
    return ErrnoStatus(
        ENOENT, absl::StrFormat("the kernel has no BTF of module %s; it is "
                                "unloaded, or was built without",
                                Av(module)));
  }
  absl::StatusOr<UniqueFd> object = OpenId(id->second);
  if (!object.ok()) return object.status();
  return open_.emplace(module, *std::move(object)).first->second.get();
}

}  // namespace ksweep
