#include "lib/index/index_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "lib/base/errno_status.h"
#include "lib/base/unique_fd.h"

namespace ksweep {
namespace {

constexpr mode_t kFileMode = 0644;  // less the umask

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status ErrorAt(int err, const char* what, const std::string& path) {
  return ErrnoStatus(err, absl::StrFormat("cannot %s %s", what, path));
}

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    const int err = errno;
    if (put < 0 && err == EINTR) continue;
    if (put < 0) return ErrorAt(err, "write", path);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  if (fsync(fd) != 0) return ErrorAt(errno, "write", path);
  return absl::OkStatus();
}

// Renaming would put a plain file in the place of a device, as of /dev/null.
absl::Status CheckReplaceable(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "cannot write %s: it is a folder or a special file, and only a regular "
      "file is replaced; choose another path",
      path));
}

// A new file beside `path`, which no one else has open.
absl::StatusOr<UniqueFd> OpenBeside(const std::string& path,
                                    std::string* beside) {
  static std::atomic<unsigned> counter{0};
  while (true) {
    *beside = absl::StrFormat("%s.%d.%u.new", path, getpid(), counter++);
    UniqueFd fd(open(beside->c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                     kFileMode));
    const int err = errno;
    if (fd.valid()) return fd;
    // One that is left of a process that was killed.
    if (err != EEXIST) return ErrorAt(err, "create", *beside);
  }
}

// So that the new name is on disk, too. Not all file systems can.
void SyncFolder(const std::string& folder) {
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) fsync(fd.get());
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Map(
    const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrorAt(errno, "open", path);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrorAt(errno, "stat", path);
  if (!S_ISREG(info.st_mode) || info.st_size == 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: an empty or special file", path));
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* const start = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (start == MAP_FAILED) return ErrorAt(errno, "map", path);
  return std::shared_ptr<const MappedFile>(new MappedFile(start, size));
}

MappedFile::~MappedFile() { munmap(start_, size_); }

absl::Status WriteFileAtOnce(const std::string& path, std::string_view bytes) {
  absl::Status status = CheckReplaceable(path);
  if (!status.ok()) return status;
  std::string beside;
  absl::StatusOr<UniqueFd> fd = OpenBeside(path, &beside);
  if (!fd.ok()) return fd.status();
  status = WriteAll(fd->get(), bytes, beside);
  if (status.ok() && rename(beside.c_str(), path.c_str()) != 0) {
    status = ErrorAt(errno, "write", path);
  }
  if (!status.ok()) {
    unlink(beside.c_str());
    return status;
  }
  SyncFolder(FolderOf(path));
  return absl::OkStatus();
}

}  // namespace ksweep
