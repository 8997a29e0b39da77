#include "lib/source/list_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/clock.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

UniqueFd OpenForReading(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// How the path is reported: without the root that was asked for.
std::string ReportedPath(const KernelFiles& files, KernelFile file,
                         const std::string& path) {
  if (files.IsOverridden(file)) return path;
  const size_t root = files.root().size();
  return path.substr(files.root().back() == '/' ? root : root + 1);
}

}  // namespace

ListFile::ListFile(UniqueFd fd, std::string path, std::string stats_path)
    : fd_(std::move(fd)), path_(std::move(path)) {
  stats_.path = std::move(stats_path);
  stats_.opens = 1;
  stats_.passes = 1;
}

absl::StatusOr<ListFile> ListFile::Open(const KernelFiles& files,
                                        KernelFile file) {
  const std::string path = files.Path(file);
  if (path.empty()) {
    return absl::NotFoundError(
        absl::StrFormat("%s is disabled", Av(KernelFilePath(file))));
  }
  UniqueFd fd = OpenForReading(path);
  const int err = errno;
  if (fd.valid())
    return ListFile(std::move(fd), path, ReportedPath(files, file, path));

  const std::string fallback = files.FallbackPath(file);
  if (err != ENOENT || fallback.empty()) {
    return ErrnoStatus(err, absl::StrFormat("cannot open %s", path));
  }
  fd = OpenForReading(fallback);
  const int fallback_err = errno;
  if (fd.valid()) {
    return ListFile(std::move(fd), fallback,
                    ReportedPath(files, file, fallback));
  }
  // If neither exists, the place where it should be is named.
  const bool neither = fallback_err == ENOENT;
  return ErrnoStatus(fallback_err, absl::StrFormat("cannot open %s",
                                                   neither ? path : fallback));
}

absl::Status ShortageOf(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return absl::OkStatus();
  return Annotate(status,
                  "a kernel list is there or not, that cannot be seen; close "
                  "descriptors or raise RLIMIT_NOFILE (ulimit -n), or free "
                  "memory");
}

absl::StatusOr<ListFile> ListFile::OpenBtf(const KernelFiles& files,
                                           std::string_view module) {
  // Names come from texts that anyone can have written.
  if (module.find('/') != std::string_view::npos || module == "." ||
      module == "..") {
    return absl::InvalidArgumentError(
        absl::StrFormat("'%s' cannot be a module", Av(module)));
  }
  const std::string path = files.BtfPath(module);
  if (path.empty()) {
    return absl::NotFoundError(absl::StrFormat(
        "%s is disabled", Av(KernelFilePath(KernelFile::kBtfDir))));
  }
  UniqueFd fd = OpenForReading(path);
  const int err = errno;
  if (!fd.valid()) {
    return ErrnoStatus(err, absl::StrFormat("cannot open %s", path));
  }
  return ListFile(std::move(fd), path,
                  ReportedPath(files, KernelFile::kBtfDir, path));
}

ListFile ListFile::OfText(std::string text, std::string name) {
  ListFile file(UniqueFd(), name, name);
  file.text_ = std::make_unique<const std::string>(std::move(text));
  file.stats_.opens = 0;
  return file;
}

absl::StatusOr<size_t> ListFile::Read(char* buffer, size_t size) {
  if (text_ != nullptr) {
    const size_t cnt = text_->copy(buffer, size, text_at_);
    text_at_ += cnt;
    return cnt;
  }
  const int64_t start = NowNs();
  ssize_t got;
  int err;
  do {
    got = read(fd_.get(), buffer, size);
    err = errno;
  } while (got < 0 && err == EINTR);
  read_ns_ += NowNs() - start;
  ++stats_.reads;
  if (got < 0) {
    return ErrnoStatus(err, absl::StrFormat("cannot read %s", path_));
  }
  stats_.bytes += static_cast<uint64_t>(got);
  return static_cast<size_t>(got);
}

absl::Status ListFile::Rewind() {
  if (text_ != nullptr) {
    text_at_ = 0;
    return absl::OkStatus();
  }
  const off_t at = lseek(fd_.get(), 0, SEEK_SET);
  const int err = errno;
  if (at < 0) {
    return ErrnoStatus(err, absl::StrFormat("cannot read %s again", path_));
  }
  ++stats_.passes;
  return absl::OkStatus();
}

// Grows by what was read so far, from what the file says its size is: of most
// kernel files nothing, of BTF the truth.
absl::StatusOr<std::string> ListFile::ReadAll() {
  constexpr size_t kLeast = 256;
  struct stat info = {};
  std::string text;
  if (fstat(fd_.get(), &info) == 0 && info.st_size > 0) {
    text.resize(static_cast<size_t>(info.st_size) + 1);
  }
  size_t used = 0;
  for (;;) {
    if (used == text.size()) text.resize(std::max(kLeast, 2 * used));
    absl::StatusOr<size_t> got = Read(text.data() + used, text.size() - used);
    if (!got.ok()) return got.status();
    used += *got;
    if (*got > 0) continue;
    text.resize(used);
    return text;
  }
}

absl::StatusOr<std::string> ReadSmallFile(const KernelFiles& files,
                                          KernelFile file) {
  absl::StatusOr<ListFile> list = ListFile::Open(files, file);
  if (!list.ok()) return list.status();
  return list->ReadAll();
}

}  // namespace ksweep
