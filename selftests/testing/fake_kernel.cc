#include "selftests/testing/fake_kernel.h"

#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace ksweep::testing {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void Die(const std::string& what) {
  std::perror(what.c_str());
  std::abort();
}

void WriteFile(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!out) Die(path.string());
}

}  // namespace

FakeKernel::FakeKernel() {
  std::string pattern = fs::temp_directory_path() / "ksweep-root-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) Die(pattern);
  root_ = pattern;
}

FakeKernel::~FakeKernel() {
  std::error_code error;
  fs::remove_all(root_, error);
}

FakeKernel& FakeKernel::Write(KernelFile file, std::string_view text) {
  return WritePath(KernelFilePath(file), text);
}

FakeKernel& FakeKernel::WritePath(std::string_view path,
                                  std::string_view text) {
  WriteFile(fs::path(root_) / path, text);
  return *this;
}

FakeKernel& FakeKernel::WriteBtf(std::string_view module,
                                 std::string_view bytes) {
  WriteFile(files().BtfPath(module), bytes);
  return *this;
}

FakeKernel& FakeKernel::Unpack(const std::string& name) {
  const fs::path from = fs::path(DataFolder()) / name;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(from)) {
    if (entry.path().extension() != ".gz") continue;
    const fs::path relative = fs::relative(entry.path(), from);
    WritePath((relative.parent_path() / relative.stem()).string(),
              Gunzip(entry.path()));
  }
  return *this;
}

std::string FakeKernel::Path(KernelFile file) const {
  return fs::path(root_) / KernelFilePath(file);
}

std::string DataFolder() {
  const char* folder = getenv("KSWEEP_TEST_DATA");
  return folder != nullptr ? folder : KSWEEP_TEST_DATA;
}

std::string Gunzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) Die(path);
  std::string text;
  std::string buffer(256 * 1024, '\0');
  int got;
  while ((got = gzread(file, buffer.data(),
                       static_cast<unsigned>(buffer.size()))) > 0) {
    text.append(buffer, 0, static_cast<size_t>(got));
  }
  gzclose(file);
  if (got < 0) Die(path);
  return text;
}

OpenCounter::OpenCounter() : fd_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (fd_ < 0) Die("inotify_init1");
}

OpenCounter::~OpenCounter() { close(fd_); }

void OpenCounter::Watch(const std::string& path) {
  const int watch =
      inotify_add_watch(fd_, path.c_str(), IN_OPEN | IN_ACCESS | IN_CLOSE);
  if (watch < 0) Die(path);
  watches_[path] = watch;
  opens_[watch] = 0;
}

void OpenCounter::Collect() {
  // The kernel merges equal events that follow each other; what is watched
  // beside the opens keeps these apart.
  alignas(inotify_event) char buffer[4096];
  ssize_t got;
  while ((got = read(fd_, buffer, sizeof(buffer))) > 0) {
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      if ((event->mask & IN_OPEN) != 0) ++opens_[event->wd];
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
  }
}

int OpenCounter::Opens(const std::string& path) {
  Collect();
  return opens_[watches_.at(path)];
}

int OpenDescriptors() {
  int cnt = -1;  // the one that lists them
  for ([[maybe_unused]] const auto& entry :
       fs::directory_iterator("/proc/self/fd")) {
    ++cnt;
  }
  return cnt;
}

}  // namespace ksweep::testing
