#include "selftests/testing/fake_perf.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace ksweep {
namespace {

int NewFd() {
  const int fd = memfd_create("fake perf", MFD_CLOEXEC);
  if (fd < 0) std::abort();
  return fd;
}

// 0 if the descriptor is not open.
uint64_t InodeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

template <typename Attr>
Attr CopyAttr(const void* attr, size_t size) {
  Attr copy;
  std::memcpy(static_cast<void*>(&copy), attr, std::min(size, sizeof(copy)));
  return copy;
}

// Leaves nothing useful in errno: the result is all that may be looked at.
int WithoutErrno(int result) {
  errno = EDOM;
  return result;
}

}  // namespace

int FakePerf::AddProgram(uint32_t expected_attach_type) {
  program_fds_.emplace_back(NewFd());
  const int fd = program_fds_.back().get();
  programs_[fd] = expected_attach_type;
  return fd;
}

void FakePerf::AddFunction(uint64_t addr, std::string name) {
  functions_[addr] = std::move(name);
}

int FakePerf::NextFailure() {
  const auto failure = failures_.find(calls_++);
  return failure == failures_.end() ? 0 : failure->second;
}

int FakePerf::CheckFunction(const perf_event_attr& attr) const {
  if (attr.config1 == 0) {
    const auto refusal = refusals_.find(attr.config2);
    if (refusal != refusals_.end()) return refusal->second;
    if (attr.config2 == 0) return EINVAL;
    return functions_.count(attr.config2) != 0 ? 0 : ENOENT;
  }
  const std::string_view name(reinterpret_cast<const char*>(attr.config1));
  const auto cnt = std::count_if(
      functions_.begin(), functions_.end(),
      [name](const auto& function) { return function.second == name; });
  if (cnt == 0) return ENOENT;
  return cnt == 1 ? 0 : EADDRNOTAVAIL;
}

int FakePerf::CheckEvent(const perf_event_attr& attr) const {
  if (attr.type != options_.pmu.type) return ENOENT;
  if (!options_.privileged) return EACCES;
  return CheckFunction(attr);
}

int FakePerf::OpenEvent(perf_event_attr* attr) {
  int err = NextFailure();
  if (err == 0) err = CheckEvent(*attr);
  if (err != 0) return WithoutErrno(-err);
  const int fd = NewFd();
  Event event;
  event.inode = InodeOf(fd);
  event.attached.at_return = attr->config == options_.pmu.retprobe_config;
  event.attached.addr = attr->config2;
  if (attr->config1 != 0) {
    event.attached.name = reinterpret_cast<const char*>(attr->config1);
  }
  events_[fd] = std::move(event);
  return WithoutErrno(fd);
}

const FakePerf::Event* FakePerf::FindEvent(int fd) const {
  const auto event = events_.find(fd);
  if (event == events_.end() || InodeOf(fd) != event->second.inode) {
    return nullptr;
  }
  return &event->second;
}

int FakePerf::LoadProgram(const ProgLoadAttr& attr) {
  if (!options_.privileged) return -EPERM;
  if (attr.prog_type != kBpfProgTypeKprobe) return -EINVAL;
  const int fd = NewFd();
  programs_[fd] = attr.expected_attach_type;
  return fd;
}

int FakePerf::CreateLink(const PerfLinkAttr& attr) {
  const auto program = programs_.find(static_cast<int>(attr.prog_fd));
  if (program == programs_.end()) return -EBADF;
  if (attr.attach_type != kBpfPerfEvent || program->second != 0) return -EINVAL;
  if (!options_.has_perf_links || attr.link_flags != 0) return -EINVAL;
  const Event* event = FindEvent(static_cast<int>(attr.target_fd));
  if (event == nullptr) return -EBADF;
  Attached attached = event->attached;
  attached.by_link = true;
  attached.cookie = attr.cookie;
  attached.prog_fd = static_cast<int>(attr.prog_fd);
  attached.fd = NewFd();
  attached.inode = InodeOf(attached.fd);
  attached_.push_back(attached);
  return attached.fd;
}

int FakePerf::Bpf(int cmd, void* attr, size_t size) {
  const int err = NextFailure();
  if (err != 0) return WithoutErrno(-err);
  if (cmd == kBpfProgLoad) {
    return WithoutErrno(LoadProgram(CopyAttr<ProgLoadAttr>(attr, size)));
  }
  if (cmd == kBpfLinkCreate) {
    return WithoutErrno(CreateLink(CopyAttr<PerfLinkAttr>(attr, size)));
  }
  return WithoutErrno(-EINVAL);
}

// Takes a program of any attach type, as the kernel does.
int FakePerf::SetProgram(int fd, int prog_fd) {
  const Event* event = FindEvent(fd);
  if (event == nullptr || programs_.count(prog_fd) == 0) return -EBADF;
  Attached attached = event->attached;
  attached.prog_fd = prog_fd;
  attached.fd = fd;
  attached.inode = event->inode;
  attached_.push_back(attached);
  return 0;
}

int FakePerf::Enable(int fd) {
  for (Attached& attached : attached_) {
    if (attached.fd == fd) attached.enabled = true;
  }
  return FindEvent(fd) == nullptr ? -EBADF : 0;
}

int FakePerf::Ioctl(int fd, unsigned long request, unsigned long arg) {
  const int err = NextFailure();
  if (err != 0) return WithoutErrno(-err);
  if (request == PERF_EVENT_IOC_SET_BPF) {
    return WithoutErrno(SetProgram(fd, static_cast<int>(arg)));
  }
  return WithoutErrno(request == PERF_EVENT_IOC_ENABLE ? Enable(fd) : -ENOTTY);
}

int FakePerf::GetFdLimit(FdLimit* limit) {
  if (options_.limit_hidden) return -EPERM;
  *limit = options_.limit;
  return 0;
}

int FakePerf::SetFdLimit(const FdLimit& limit) {
  if (options_.set_limit_errno != 0) return -options_.set_limit_errno;
  if (limit.soft > limit.hard) return -EINVAL;
  options_.limit = limit;
  return 0;
}

size_t FakePerf::OpenCnt() const {
  return static_cast<size_t>(std::count_if(
      attached_.begin(), attached_.end(), [](const Attached& attached) {
        return InodeOf(attached.fd) == attached.inode;
      }));
}

}  // namespace ksweep
