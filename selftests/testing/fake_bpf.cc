#include "selftests/testing/fake_bpf.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace ksweep {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kKsymNameLen = 512;
constexpr uint32_t kMaxKprobeMultiCnt = 1u << 20;
// The kernel checks BPF_LINK_CREATE's bytes behind the longest member of
// link_create, whichever is in use.
constexpr size_t kLinkCreateBytes = 64;

int NewFd() {
  const int fd = memfd_create("fake bpf", MFD_CLOEXEC);
  if (fd < 0) std::abort();
  return fd;
}

// 0 if the descriptor is not open.
uint64_t InodeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

bool AllZero(const void* bytes, size_t from, size_t to) {
  const char* text = static_cast<const char*>(bytes);
  return from >= to || std::all_of(text + from, text + to,
                                   [](char byte) { return byte == 0; });
}

template <typename Attr>
Attr CopyAttr(const void* attr, size_t size) {
  Attr copy;
  std::memcpy(static_cast<void*>(&copy), attr, std::min(size, sizeof(copy)));
  return copy;
}

template <typename T>
std::vector<T> CopyArray(uint64_t address, uint32_t cnt) {
  std::vector<T> items(cnt);
  if (cnt > 0) {
    std::memcpy(items.data(), reinterpret_cast<const void*>(address),
                cnt * sizeof(T));
  }
  return items;
}

std::vector<std::string> CopyNames(uint64_t address, uint32_t cnt) {
  std::vector<std::string> names;
  for (uint64_t pointer : CopyArray<uint64_t>(address, cnt)) {
    names.emplace_back(reinterpret_cast<const char*>(pointer));
  }
  return names;
}

bool HasDuplicate(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

}  // namespace

size_t CountOpenFds() {
  DIR* dir = opendir("/proc/self/fd");
  if (dir == nullptr) std::abort();
  size_t cnt = 0;
  while (readdir(dir) != nullptr) ++cnt;
  closedir(dir);
  return cnt - 3;  // ".", "..", and the folder itself
}

int FakeBpfSys::AddProgram(uint32_t expected_attach_type) {
  const std::lock_guard<std::mutex> lock(mutex_);
  program_fds_.emplace_back(NewFd());
  const int fd = program_fds_.back().get();
  programs_[InodeOf(fd)] = expected_attach_type;
  return fd;
}

void FakeBpfSys::AddFunction(uint64_t addr, std::string name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  functions_.insert(addr);
  names_.emplace(std::move(name), addr);
}

void FakeBpfSys::RefuseAddr(uint64_t addr, int err) {
  const std::lock_guard<std::mutex> lock(mutex_);
  refusals_[addr] = err;
  if (err == 0) refusals_.erase(addr);
}

void FakeBpfSys::FailCall(uint32_t call, int err) {
  const std::lock_guard<std::mutex> lock(mutex_);
  failures_[call] = err;
  if (err == 0) failures_.erase(call);
}

int FakeBpfSys::Bpf(int cmd, void* attr, size_t size) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int result = Dispatch(cmd, attr, size);
  errno = EDOM;  // the result is all that may be looked at
  return result;
}

uint32_t FakeBpfSys::calls() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return calls_;
}

std::vector<FakeBpfSys::Link> FakeBpfSys::links() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return links_;
}

bool FakeBpfSys::IsOpen(const Link& link) const {
  return InodeOf(link.fd) == link.inode;
}

size_t FakeBpfSys::OpenLinkCnt() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return OpenLinkCntLocked();
}

size_t FakeBpfSys::OpenLinkCntLocked() const {
  return static_cast<size_t>(std::count_if(
      links_.begin(), links_.end(),
      [](const Link& link) { return InodeOf(link.fd) == link.inode; }));
}

int FakeBpfSys::Dispatch(int cmd, const void* attr, size_t size) {
  const auto failure = failures_.find(calls_++);
  if (failure != failures_.end()) return -failure->second;
  if (size > kPageBytes) return -E2BIG;
  if (!AllZero(attr, options_.known_attr_bytes, size)) return -E2BIG;
  switch (cmd) {
    case kBpfLinkCreate:
      return CreateLink(attr, size);
    case kBpfObjGetInfoByFd:
      return GetInfo(attr, size);
    case kBpfObjPin:
      return Pin(attr, size);
    case kBpfObjGet:
      return OpenPin(attr, size);
    case kBpfProgGetFdById:
      return OpenProgramById(attr, size);
    default:
      return -EINVAL;
  }
}

int FakeBpfSys::CreateLink(const void* bytes, size_t size) {
  if (!AllZero(bytes, kLinkCreateBytes, size)) return -EINVAL;
  const auto attr = CopyAttr<KprobeMultiLinkAttr>(bytes, size);
  int err = CheckCall(attr);
  if (err != 0) return -err;

  Link link;
  link.attach_type = attr.attach_type;
  link.flags = attr.flags;
  link.prog_fd = static_cast<int>(attr.prog_fd);
  link.prog_inode = InodeOf(link.prog_fd);
  if (attr.addrs != 0) link.addrs = CopyArray<uint64_t>(attr.addrs, attr.cnt);
  if (attr.syms != 0) link.names = CopyNames(attr.syms, attr.cnt);
  if (attr.cookies != 0) {
    link.cookies = CopyArray<uint64_t>(attr.cookies, attr.cnt);
  }
  err = CheckNames(link.names);
  if (err == 0) err = CheckSize(attr.cnt);
  if (err == 0) err = CheckAddrs(link.addrs);
  if (err == 0 && options_.ftrace_dead) err = ENODEV;
  if (err != 0) return -err;

  link.fd = NewFd();
  link.inode = InodeOf(link.fd);
  links_.push_back(link);
  return link.fd;
}

int FakeBpfSys::CheckCall(const KprobeMultiLinkAttr& attr) const {
  const auto program = programs_.find(InodeOf(static_cast<int>(attr.prog_fd)));
  if (program == programs_.end()) return EBADF;
  if (!options_.has_fprobe) return EOPNOTSUPP;
  if (attr.link_flags != 0 || attr.target_fd != 0) return EINVAL;
  if (program->second != attr.attach_type) return EINVAL;
  if (attr.attach_type != kBpfTraceKprobeMulti &&
      attr.attach_type != kBpfTraceKprobeSession) {
    return EINVAL;
  }
  if ((attr.flags & ~kBpfKprobeMultiReturn) != 0) return EINVAL;
  if ((attr.addrs != 0) == (attr.syms != 0)) return EINVAL;
  if (attr.cnt == 0) return EINVAL;
  return attr.cnt > kMaxKprobeMultiCnt ? E2BIG : 0;
}

int FakeBpfSys::CheckNames(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    if (name.size() >= kKsymNameLen) return E2BIG;
  }
  if (HasDuplicate(names)) return ESRCH;
  for (const std::string& name : names) {
    if (!HasName(name)) return ESRCH;
  }
  return 0;
}

int FakeBpfSys::CheckSize(uint32_t cnt) const {
  // Counting is slow after thousands of links.
  if (options_.max_open_links != SIZE_MAX &&
      OpenLinkCntLocked() >= options_.max_open_links) {
    return EMFILE;
  }
  return cnt >= options_.enomem_cnt ? ENOMEM : 0;
}

int FakeBpfSys::CheckAddrs(const std::vector<uint64_t>& addrs) const {
  for (uint64_t addr : addrs) {
    const auto refusal = refusals_.find(addr);
    if (refusal != refusals_.end()) return refusal->second;
    if (!options_.trace_anything && functions_.count(addr) == 0) {
      return options_.bad_addr_errno;
    }
  }
  return 0;
}

// 0 for one that was not added.
uint64_t FakeBpfSys::AddrOfName(const std::string& name) const {
  const auto place = names_.find(name);
  return place == names_.end() ? 0 : place->second;
}

bool FakeBpfSys::HasName(const std::string& name) const {
  return options_.trace_anything || names_.count(name) != 0;
}

const FakeBpfSys::Link* FakeBpfSys::FindOpenLink(int fd) const {
  for (const Link& link : links_) {
    // A descriptor of it, or of its pin.
    if (InodeOf(fd) == link.inode) return &link;
  }
  return nullptr;
}

int FakeBpfSys::GetInfo(const void* bytes, size_t size) const {
  const auto attr = CopyAttr<ObjInfoAttr>(bytes, size);
  const Link* link = FindOpenLink(static_cast<int>(attr.bpf_fd));
  if (link == nullptr) return -EBADF;

  char* place = reinterpret_cast<char*>(attr.info);
  if (!AllZero(place, options_.known_info_bytes, attr.info_len)) return -E2BIG;
  const auto asked = CopyAttr<LinkInfoBuffer>(place, attr.info_len);
  const int err = FillArrays(*link, asked.kprobe_multi);
  if (err != 0) return -err;

  LinkInfoBuffer info = asked;
  info.type = kBpfLinkTypeKprobeMulti;
  info.id = static_cast<uint32_t>(link - links_.data()) + 1;
  info.prog_id = ProgIdOf(*link);
  info.kprobe_multi.cnt =
      static_cast<uint32_t>(link->addrs.size() + link->names.size());
  info.kprobe_multi.flags = link->flags;
  info.kprobe_multi.missed = options_.missed;
  std::memcpy(place, &info,
              std::min<size_t>(
                  {attr.info_len, options_.known_info_bytes, sizeof(info)}));
  return 0;
}

// As bpf_kprobe_multi_link_fill_link_info() (Linux v6.12,
// kernel/trace/bpf_trace.c), with as much room as there are functions.
int FakeBpfSys::FillArrays(const Link& link,
                           const KprobeMultiInfo& asked) const {
  if ((asked.addrs == 0) != (asked.cnt == 0)) return EINVAL;
  if (asked.cookies != 0 && asked.cnt == 0) return EINVAL;
  if (asked.addrs == 0) return 0;
  std::vector<uint64_t> addrs = link.addrs;
  for (const std::string& name : link.names) addrs.push_back(AddrOfName(name));
  if (asked.cnt < addrs.size()) return ENOSPC;
  if (options_.hides_addrs) addrs.assign(addrs.size(), 0);
  std::vector<uint64_t> cookies = link.cookies;
  cookies.resize(addrs.size());
  if (options_.tamper_info) options_.tamper_info(addrs, cookies);
  std::memcpy(reinterpret_cast<void*>(asked.addrs), addrs.data(),
              addrs.size() * sizeof(uint64_t));
  if (asked.cookies == 0 || !options_.tells_cookies) return 0;
  std::memcpy(reinterpret_cast<void*>(asked.cookies), cookies.data(),
              cookies.size() * sizeof(uint64_t));
  return 0;
}

uint32_t FakeBpfSys::ProgIdOf(const Link& link) const {
  return static_cast<uint32_t>(link.prog_inode);
}

int FakeBpfSys::Pin(const void* bytes, size_t size) {
  const auto attr = CopyAttr<ObjPinAttr>(bytes, size);
  if (FindOpenLink(static_cast<int>(attr.bpf_fd)) == nullptr) return -EBADF;
  const char* path = reinterpret_cast<const char*>(attr.pathname);
  // The file stands for the pin, a descriptor of ours for what it holds.
  const int file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return -errno;
  close(file);
  pins_[path] =
      UniqueFd(fcntl(static_cast<int>(attr.bpf_fd), F_DUPFD_CLOEXEC, 0));
  return 0;
}

int FakeBpfSys::OpenPin(const void* bytes, size_t size) {
  const auto attr = CopyAttr<ObjPinAttr>(bytes, size);
  DropPinsWithoutFile();
  const auto pin = pins_.find(reinterpret_cast<const char*>(attr.pathname));
  if (pin == pins_.end()) return -ENOENT;
  return fcntl(pin->second.get(), F_DUPFD_CLOEXEC, 0);
}

int FakeBpfSys::OpenProgramById(const void* bytes, size_t size) const {
  const auto attr = CopyAttr<IdAttr>(bytes, size);
  for (const UniqueFd& fd : program_fds_) {
    if (static_cast<uint32_t>(InodeOf(fd.get())) == attr.id) {
      return fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
    }
  }
  return -ENOENT;
}

void FakeBpfSys::DropPinsWithoutFile() const {
  std::erase_if(pins_, [](const auto& pin) {
    return access(pin.first.c_str(), F_OK) != 0;
  });
}

size_t FakeBpfSys::PinCnt() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  DropPinsWithoutFile();
  return pins_.size();
}

}  // namespace ksweep
