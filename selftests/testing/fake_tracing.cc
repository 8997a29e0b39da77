#include "selftests/testing/fake_tracing.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ksweep {
namespace {

constexpr uint32_t kCoreObject = 0;
// Its number among the kernel's BTF objects.
constexpr uint32_t kCoreBtfId = 1;
constexpr uint32_t kMaxTracingMultiCnt = 1u << 20;

uint64_t InodeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

bool IsMulti(uint32_t attach_type) {
  return attach_type >= kBpfTraceFentryMulti &&
         attach_type <= kBpfTraceFsessionMulti;
}

bool IsSingle(uint32_t attach_type) {
  return attach_type == kBpfTraceFentry || attach_type == kBpfTraceFexit ||
         attach_type == kBpfTraceFsession;
}

bool RunsAtReturn(uint32_t attach_type) {
  return attach_type != kBpfTraceFentry && attach_type != kBpfTraceFentryMulti;
}

template <typename Attr>
Attr CopyAttr(const void* attr, size_t size) {
  Attr copy;
  std::memcpy(static_cast<void*>(&copy), attr, std::min(size, sizeof(copy)));
  return copy;
}

template <typename T>
std::vector<T> CopyArray(uint64_t address, uint32_t cnt) {
  std::vector<T> items(address == 0 ? 0 : cnt);
  if (!items.empty()) {
    std::memcpy(items.data(), reinterpret_cast<const void*>(address),
                cnt * sizeof(T));
  }
  return items;
}

template <typename T>
void Fill(uint64_t address, const std::vector<T>& items, size_t room) {
  if (address == 0) return;
  std::memcpy(reinterpret_cast<void*>(address), items.data(),
              std::min(items.size(), room) * sizeof(T));
}

bool HasDuplicate(std::vector<uint32_t> ids) {
  std::sort(ids.begin(), ids.end());
  return std::adjacent_find(ids.begin(), ids.end()) != ids.end();
}

// Ids with their cookies, ascending: what the kernel makes of them.
void SortById(std::vector<uint32_t>& ids, std::vector<uint64_t>& cookies) {
  std::vector<std::pair<uint32_t, uint64_t>> pairs;
  cookies.resize(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) pairs.push_back({ids[i], cookies[i]});
  std::sort(pairs.begin(), pairs.end());
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = pairs[i].first;
    cookies[i] = pairs[i].second;
  }
}

}  // namespace

int FakeTracingSys::NewFd(uint64_t* inode) {
  const int fd = memfd_create("fake bpf", MFD_CLOEXEC);
  if (fd < 0) std::abort();
  *inode = InodeOf(fd);
  return fd;
}

uint32_t FakeTracingSys::AddModule(std::string name) {
  const uint32_t object = next_object_++;
  objects_[object] = std::move(name);
  return object;
}

FakeTracingSys::Func& FakeTracingSys::AddFunc(uint32_t object, uint32_t id) {
  return funcs_[{object, id}];
}

void FakeTracingSys::RemoveModule(uint32_t object) { objects_.erase(object); }

int FakeTracingSys::AddProgram(uint32_t attach_type) {
  uint64_t inode = 0;
  program_fds_.emplace_back(NewFd(&inode));
  programs_[inode].attach_type = attach_type;
  return program_fds_.back().get();
}

void FakeTracingSys::FailCall(uint32_t call, int err) {
  const std::lock_guard<std::mutex> lock(mutex_);
  failures_[call] = err;
}

int FakeTracingSys::Bpf(int cmd, void* attr, size_t size) {
  if (options_.on_call && (cmd == kBpfProgLoad || cmd == kBpfLinkCreate)) {
    options_.on_call(cmd);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const int result = Dispatch(cmd, attr, size);
  errno = EDOM;  // the result is all that may be looked at
  return result;
}

uint32_t FakeTracingSys::calls() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return calls_;
}

uint32_t FakeTracingSys::calls(int cmd) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto counted = calls_by_cmd_.find(cmd);
  return counted == calls_by_cmd_.end() ? 0 : counted->second;
}

std::vector<FakeTracingSys::Link> FakeTracingSys::links() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return links_;
}

std::vector<FakeTracingSys::Program> FakeTracingSys::loads() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return loads_;
}

std::vector<FakeTracingSys::Link> FakeTracingSys::OpenLinks() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Link> open;
  for (const Link& link : links_) {
    if (InodeOf(link.fd) == link.inode) open.push_back(link);
  }
  return open;
}

int FakeTracingSys::Dispatch(int cmd, void* attr, size_t size) {
  ++calls_by_cmd_[cmd];
  const auto failure = failures_.find(calls_++);
  if (failure != failures_.end()) return -failure->second;
  switch (cmd) {
    case kBpfProgLoad:
      return LoadProgram(CopyAttr<ProgLoadAttr>(attr, size));
    case kBpfLinkCreate: {
      const auto one = CopyAttr<TracingLinkAttr>(attr, size);
      return IsMulti(one.attach_type)
                 ? LinkMany(CopyAttr<TracingMultiLinkAttr>(attr, size))
                 : LinkOne(one);
    }
    case kBpfBtfGetNextId:
      return NextBtf(static_cast<IdAttr*>(attr));
    case kBpfBtfGetFdById:
      return OpenBtf(CopyAttr<IdAttr>(attr, size).id);
    case kBpfObjGetInfoByFd:
      return GetInfo(CopyAttr<ObjInfoAttr>(attr, size));
    default:
      return -EINVAL;
  }
}

int FakeTracingSys::LoadProgram(const ProgLoadAttr& attr) {
  uint32_t object = kCoreObject;
  if (attr.attach_btf_obj_fd != 0) {
    const auto btf =
        btf_fds_.find(InodeOf(static_cast<int>(attr.attach_btf_obj_fd)));
    if (btf == btf_fds_.end()) return -EINVAL;
    object = btf->second;
  }
  const int err = CheckLoad(attr, object);
  if (err != 0) {
    if (attr.log_buf != 0) {
      std::strncpy(reinterpret_cast<char*>(attr.log_buf),
                   "func: reasons\nthe last line\nprocessed 0 insns\n",
                   attr.log_size);
    }
    return -err;
  }
  Program program;
  program.attach_type = attr.expected_attach_type;
  program.object = object;
  program.btf_id = attr.attach_btf_id;
  program.prog_flags = attr.prog_flags;
  program.license = reinterpret_cast<const char*>(attr.license);
  program.name = attr.prog_name;
  program.insn_cnt = attr.insn_cnt;
  uint64_t inode = 0;
  const int fd = NewFd(&inode);
  programs_[inode] = program;
  loads_.push_back(program);
  return fd;
}

int FakeTracingSys::CheckLoad(const ProgLoadAttr& attr, uint32_t object) const {
  if (attr.prog_type != kBpfProgTypeTracing) return EINVAL;
  const uint32_t attach_type = attr.expected_attach_type;
  if (IsMulti(attach_type)) {
    return options_.has_multi && attr.attach_btf_id == 0 ? 0 : EINVAL;
  }
  if (!IsSingle(attach_type)) return EINVAL;
  return FindTrampoline(attach_type, {object, attr.attach_btf_id});
}

// 0 if such a program can be on the function.
int FakeTracingSys::FindTrampoline(uint32_t attach_type, FuncId id) const {
  const auto place = funcs_.find(id);
  if (place == funcs_.end()) return EINVAL;
  const Func& func = place->second;
  if (func.no_trampoline) return EINVAL;
  if (!func.traceable) return ENOENT;
  if (func.wide_return && RunsAtReturn(attach_type)) return EOPNOTSUPP;
  return 0;
}

int FakeTracingSys::LinkOne(const TracingLinkAttr& attr) {
  const auto program = programs_.find(InodeOf(static_cast<int>(attr.prog_fd)));
  if (program == programs_.end()) return -EBADF;
  if (program->second.attach_type != attr.attach_type || attr.target_fd != 0 ||
      attr.target_btf_id != 0) {
    return -EINVAL;
  }
  if (!options_.has_direct_calls) return -524;
  Link link;
  link.attach_type = attr.attach_type;
  link.object = program->second.object;
  link.ids = {program->second.btf_id};
  link.cookies = {attr.cookie};
  link.program = program->first;
  return MakeLink(std::move(link), 1);
}

int FakeTracingSys::LinkMany(const TracingMultiLinkAttr& attr) {
  const auto program = programs_.find(InodeOf(static_cast<int>(attr.prog_fd)));
  if (program == programs_.end()) return -EBADF;
  if (program->second.attach_type != attr.attach_type || attr.link_flags != 0 ||
      attr.target_fd != 0) {
    return -EINVAL;
  }
  if (!options_.has_direct_calls) return -EOPNOTSUPP;
  if (attr.ids == 0 || attr.cnt == 0) return -EINVAL;
  if (attr.cnt > kMaxTracingMultiCnt) return -E2BIG;
  Link link;
  link.attach_type = attr.attach_type;
  link.object = program->second.object;
  link.ids = CopyArray<uint32_t>(attr.ids, attr.cnt);
  link.cookies = CopyArray<uint64_t>(attr.cookies, attr.cnt);
  link.program = program->first;
  if (HasDuplicate(link.ids)) return -EINVAL;
  SortById(link.ids, link.cookies);
  return MakeLink(std::move(link), attr.cnt);
}

int FakeTracingSys::MakeLink(Link link, size_t cnt) {
  const size_t open = static_cast<size_t>(std::count_if(
      links_.begin(), links_.end(),
      [](const Link& made) { return InodeOf(made.fd) == made.inode; }));
  if (open >= options_.max_open_links) return -EMFILE;
  if (cnt >= options_.enomem_cnt) return -ENOMEM;
  for (uint32_t id : link.ids) {
    const int err = FindTrampoline(link.attach_type, {link.object, id});
    if (err != 0) return -err;
  }
  for (uint32_t id : link.ids) {
    const int err = CheckFunc(link, id);
    if (err != 0) return -err;
  }
  link.fd = NewFd(&link.inode);
  links_.push_back(std::move(link));
  return links_.back().fd;
}

// What a trampoline says about one more program.
int FakeTracingSys::CheckFunc(const Link& link, uint32_t id) const {
  size_t cnt = funcs_.at({link.object, id}).foreign_programs;
  for (const Link& made : links_) {
    if (made.object != link.object || InodeOf(made.fd) != made.inode) continue;
    if (std::count(made.ids.begin(), made.ids.end(), id) == 0) continue;
    if (made.program == link.program) return EBUSY;
    ++cnt;
  }
  return cnt >= options_.max_programs ? E2BIG : 0;
}

int FakeTracingSys::NextBtf(IdAttr* attr) const {
  if (attr->id < kCoreBtfId) {
    attr->next_id = kCoreBtfId;
    return 0;
  }
  const auto next = objects_.upper_bound(attr->id);
  if (next == objects_.end()) return -ENOENT;
  attr->next_id = next->first;
  return 0;
}

int FakeTracingSys::OpenBtf(uint32_t id) {
  if (id != kCoreBtfId && objects_.count(id) == 0) return -ENOENT;
  uint64_t inode = 0;
  const int fd = NewFd(&inode);
  btf_fds_[inode] = id;
  return fd;
}

int FakeTracingSys::GetInfo(const ObjInfoAttr& attr) const {
  const int fd = static_cast<int>(attr.bpf_fd);
  void* place = reinterpret_cast<void*>(attr.info);
  const auto btf = btf_fds_.find(InodeOf(fd));
  if (btf != btf_fds_.end()) return GetBtfInfo(btf->second, place);
  const Link* link = OpenLink(fd);
  if (link != nullptr) return GetLinkInfo(*link, place, attr.info_len);
  return -EBADF;
}

int FakeTracingSys::GetBtfInfo(uint32_t object, void* place) const {
  const auto entry = objects_.find(object);
  const std::string name = object == kCoreBtfId      ? "vmlinux"
                           : entry == objects_.end() ? ""
                                                     : entry->second;
  auto info = CopyAttr<BtfInfo>(place, sizeof(BtfInfo));
  std::strncpy(reinterpret_cast<char*>(info.name), name.c_str(), info.name_len);
  info.id = object;
  info.kernel_btf = !name.empty();
  info.name_len = static_cast<uint32_t>(name.size());
  std::memcpy(place, &info, sizeof(info));
  return 0;
}

int FakeTracingSys::GetLinkInfo(const Link& link, void* place,
                                size_t bytes) const {
  auto buffer = CopyAttr<LinkInfoBuffer>(place, bytes);
  TracingMultiInfo& info = buffer.tracing_multi;
  const size_t room = info.cnt;
  const bool has_arrays = info.ids != 0 || info.addrs != 0 || info.cookies != 0;
  if (has_arrays != (room != 0)) return -EINVAL;
  Fill(info.ids, link.ids, room);
  Fill(info.cookies, link.cookies, room);
  if (has_arrays && room < link.ids.size()) return -ENOSPC;
  buffer.type = kBpfLinkTypeTracingMulti;
  buffer.id = static_cast<uint32_t>(&link - links_.data()) + 1;
  info.attach_type = link.attach_type;
  info.cnt = static_cast<uint32_t>(link.ids.size());
  info.btf_obj_id = link.object == kCoreObject ? kCoreBtfId : link.object;
  std::memcpy(place, &buffer, std::min(bytes, sizeof(buffer)));
  return 0;
}

const FakeTracingSys::Link* FakeTracingSys::OpenLink(int fd) const {
  const uint64_t inode = InodeOf(fd);
  for (const Link& link : links_) {
    if (link.fd == fd && link.inode == inode) return &link;
  }
  return nullptr;
}

}  // namespace ksweep
