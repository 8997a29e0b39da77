#include "lib/attach/live/pin.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "lib/attach/live/taken_over.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

constexpr size_t kNumberWidth = 8;

std::string PathOf(const std::string& dir, std::string_view name) {
  return absl::StrFormat("%s/%s", dir, Av(name));
}

// The names in `dir`, ascending.
absl::StatusOr<std::vector<std::string>> ListNames(const std::string& dir) {
  DIR* stream = opendir(dir.c_str());
  if (stream == nullptr) {
    const int err = errno;
    return ErrnoStatus(err, absl::StrFormat("opening the pins in '%s'", dir));
  }
  std::vector<std::string> names;
  while (const dirent* entry = readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(stream);
  std::sort(names.begin(), names.end());
  return names;
}

// Makes the folder, or finds it empty.
absl::Status MakeFolder(const std::string& dir) {
  if (mkdir(dir.c_str(), 0700) == 0) return absl::OkStatus();
  const int err = errno;
  if (err != EEXIST) {
    return ErrnoStatus(err, absl::StrFormat("making the folder '%s'", dir));
  }
  const absl::StatusOr<std::vector<std::string>> names = ListNames(dir);
  if (!names.ok()) return names.status();
  if (names->empty()) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrFormat(
      "'%s' is not empty, it has '%s'; give a folder of its own, or take over "
      "what is pinned there with TakeOver()",
      dir, names->front()));
}

absl::Status PinError(int err, const std::string& path) {
  const std::string what = absl::StrFormat("pinning a link as '%s'", path);
  if (err != EPERM) return ErrnoStatus(err, what);
  return ErrnoStatus(
      err, absl::StrFormat("%s: not permitted, or not on a BPF file system "
                           "(mount -t bpf bpf /sys/fs/bpf)",
                           what));
}

absl::Status PinOne(BpfSys& sys, const Link& link, const std::string& path) {
  ObjPinAttr attr;
  attr.pathname = reinterpret_cast<uintptr_t>(path.c_str());
  attr.bpf_fd = static_cast<uint32_t>(link.fd());
  const int result = sys.Bpf(kBpfObjPin, &attr, sizeof(attr));
  if (result >= 0) return absl::OkStatus();
  if (result == -EINVAL) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "pinning a link as '%s': it is a perf event and no BPF link; that "
        "needs Linux 5.15",
        path));
  }
  return PinError(-result, path);
}

void Remove(const std::string& dir, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) unlink(path.c_str());
  rmdir(dir.c_str());
}

std::string PathOfLink(const AttachmentState& state, const std::string& dir,
                       size_t link) {
  const Kind kind = state.programs[state.members[link].program].kind;
  return PathOf(dir, PinName(link, kind));
}

// The kind that PinName() was given.
std::optional<Kind> KindOfPin(std::string_view name) {
  if (name.size() <= kNumberWidth || name[kNumberWidth] != '-') {
    return std::nullopt;
  }
  std::string kind(name.substr(kNumberWidth + 1));
  std::replace(kind.begin(), kind.end(), '_', '.');
  return ParseKind(kind);
}

absl::StatusOr<Link> OpenPin(BpfSys& sys, const std::string& path) {
  ObjPinAttr attr;
  attr.pathname = reinterpret_cast<uintptr_t>(path.c_str());
  const int result = sys.Bpf(kBpfObjGet, &attr, sizeof(attr));
  if (result >= 0) return Link(result);
  return ErrnoStatus(-result, absl::StrFormat("opening the pin '%s'", path));
}

}  // namespace

std::string PinName(size_t link, Kind kind) {
  std::string text(KindName(kind));
  std::replace(text.begin(), text.end(), '.', '_');
  return absl::StrFormat("%0*d-%s", static_cast<int>(kNumberWidth), link, text);
}

absl::Status PinLinks(AttachmentState& state, const std::string& dir) {
  if (!state.pin_dir.empty()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "it is pinned in '%s' already; Unpin() first", state.pin_dir));
  }
  if (state.links.empty()) {
    return absl::FailedPreconditionError(
        "nothing is attached, so nothing pins");
  }
  absl::Status status = MakeFolder(dir);
  if (!status.ok()) return status;
  std::vector<std::string> pinned;
  for (size_t i = 0; i < state.links.size(); ++i) {
    std::string path = PathOfLink(state, dir, i);
    status = PinOne(*state.sys, state.links[i], path);
    if (!status.ok()) {
      Remove(dir, pinned);
      return status;
    }
    pinned.push_back(std::move(path));
  }
  state.pin_dir = dir;
  return absl::OkStatus();
}

absl::Status UnpinLinks(AttachmentState& state) {
  if (state.pin_dir.empty()) return absl::OkStatus();
  const std::string dir = std::exchange(state.pin_dir, "");
  absl::Status first_error;
  for (size_t i = 0; i < state.links.size(); ++i) {
    const std::string path = PathOfLink(state, dir, i);
    if (unlink(path.c_str()) == 0 || errno == ENOENT) continue;
    const int err = errno;
    const absl::Status status =
        ErrnoStatus(err, absl::StrFormat("removing the pin '%s'", path));
    if (first_error.ok()) first_error = status;
  }
  if (rmdir(dir.c_str()) != 0 && errno != ENOENT && first_error.ok()) {
    const int err = errno;
    return ErrnoStatus(err, absl::StrFormat("removing the folder '%s'", dir));
  }
  return first_error;
}

absl::StatusOr<std::unique_ptr<AttachmentState>> TakeOverLinks(
    BpfSys& sys, const std::string& dir, const Resolution& resolution,
    const AttachOptions& options) {
  absl::StatusOr<std::vector<std::string>> names = ListNames(dir);
  if (!names.ok()) return names.status();
  if (names->empty()) {
    return absl::NotFoundError(
        absl::StrFormat("nothing is pinned in '%s'", dir));
  }
  TakenOver taken(sys, resolution, options);
  for (const std::string& name : *names) {
    const std::optional<Kind> kind = KindOfPin(name);
    if (!kind.has_value()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "'%s' has '%s', which Pin() did not make; give the folder that "
          "Pin() was given",
          dir, name));
    }
    absl::StatusOr<Link> link = OpenPin(sys, PathOf(dir, name));
    if (!link.ok()) return link.status();
    const absl::Status status = taken.Add(*std::move(link), *kind);
    if (!status.ok()) return Annotate(status, PathOf(dir, name));
  }
  absl::StatusOr<std::unique_ptr<AttachmentState>> state =
      std::move(taken).Finish();
  if (state.ok()) (*state)->pin_dir = dir;
  return state;
}

}  // namespace ksweep
