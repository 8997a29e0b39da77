#include "lib/attach/linking/link_info.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

// In place of a cookie until the kernel writes one.
constexpr uint64_t kNotTold = 0x6b73776565702d3f;

bool AllAre(const std::vector<uint64_t>& words, uint64_t value) {
  return std::all_of(words.begin(), words.end(),
                     [value](uint64_t word) { return word == value; });
}

uint64_t ToWord(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

// Asks for one link.
class Asker {
 public:
  Asker(BpfSys& sys, int link_fd) : sys_(sys), link_fd_(link_fd) {}

  absl::StatusOr<LinkInfo> Ask(LinkDetail detail);

 private:
  absl::Status Call(LinkInfoBuffer& buffer);
  absl::Status Fill(LinkInfoBuffer buffer);
  absl::Status AskForFunctions(LinkInfo& info);
  void TakeCounts(const LinkInfoBuffer& buffer, LinkInfo& info) const;
  void TakeOne(uint64_t addr, uint64_t cookie, LinkInfo& info) const;

  BpfSys& sys_;
  const int link_fd_;
};

// What an older kernel does not fill stays zero: it takes a longer buffer if
// that is zero behind what it knows.
absl::Status Asker::Call(LinkInfoBuffer& buffer) {
  ObjInfoAttr attr;
  attr.bpf_fd = static_cast<uint32_t>(link_fd_);
  attr.info_len = sizeof(buffer);
  attr.info = ToWord(&buffer);
  const int result = sys_.Bpf(kBpfObjGetInfoByFd, &attr, sizeof(attr));
  if (result >= 0) return absl::OkStatus();
  return ErrnoStatus(
      -result,
      absl::StrFormat("asking for the info of BPF link fd %d", link_fd_));
}

void Asker::TakeOne(uint64_t addr, uint64_t cookie, LinkInfo& info) const {
  info.addrs_hidden = addr == 0;
  if (addr == 0) return;
  info.addrs = {addr};
  info.cookies = {cookie};
}

void Asker::TakeCounts(const LinkInfoBuffer& buffer, LinkInfo& info) const {
  info.type = buffer.type;
  info.prog_id = buffer.prog_id;
  switch (buffer.type) {
    case kBpfLinkTypeKprobeMulti:
      info.cnt = buffer.kprobe_multi.cnt;
      info.missed = buffer.kprobe_multi.missed;
      break;
    case kBpfLinkTypeTracingMulti:
      info.cnt = buffer.tracing_multi.cnt;
      break;
    case kBpfLinkTypePerfEvent:
      info.cnt = 1;
      info.missed = buffer.perf_kprobe.missed;
      TakeOne(buffer.perf_kprobe.addr, buffer.perf_kprobe.cookie, info);
      break;
    case kBpfLinkTypeTracing:
      info.cnt = 1;
      info.btf_id = buffer.tracing.target_btf_id;
      break;
    default:
      break;
  }
}

// Calls for the arrays. A kernel that does not know of cookies refuses a place
// for them with E2BIG, or takes no notice of it if its structure is long enough
// for another reason.
absl::Status Asker::Fill(LinkInfoBuffer buffer) {
  LinkInfoBuffer without = buffer;
  const absl::Status status = Call(buffer);
  if (ErrnoOf(status) != E2BIG || buffer.type != kBpfLinkTypeKprobeMulti) {
    return status;
  }
  without.kprobe_multi.cookies = 0;
  return Call(without);
}

absl::Status Asker::AskForFunctions(LinkInfo& info) {
  info.addrs.resize(info.cnt);
  info.cookies.resize(info.cnt, kNotTold);
  LinkInfoBuffer buffer;
  buffer.type = info.type;
  const auto cnt = static_cast<uint32_t>(info.cnt);
  if (info.type == kBpfLinkTypeKprobeMulti) {
    buffer.kprobe_multi.cnt = cnt;
    buffer.kprobe_multi.addrs = ToWord(info.addrs.data());
    buffer.kprobe_multi.cookies = ToWord(info.cookies.data());
  } else {
    buffer.tracing_multi.cnt = cnt;
    buffer.tracing_multi.addrs = ToWord(info.addrs.data());
    buffer.tracing_multi.cookies = ToWord(info.cookies.data());
  }
  const absl::Status status = Fill(buffer);
  if (!status.ok()) return status;
  info.addrs_hidden = AllAre(info.addrs, 0);
  if (info.addrs_hidden) info.addrs.clear();
  if (info.addrs_hidden || AllAre(info.cookies, kNotTold)) info.cookies.clear();
  return absl::OkStatus();
}

absl::StatusOr<LinkInfo> Asker::Ask(LinkDetail detail) {
  LinkInfoBuffer buffer;
  absl::Status status = Call(buffer);
  if (!status.ok()) return status;
  LinkInfo info;
  TakeCounts(buffer, info);
  const bool is_multi = info.type == kBpfLinkTypeKprobeMulti ||
                        info.type == kBpfLinkTypeTracingMulti;
  if (detail == LinkDetail::kFunctions && is_multi && info.cnt > 0) {
    status = AskForFunctions(info);
    if (!status.ok()) return status;
  }
  return info;
}

}  // namespace

absl::StatusOr<LinkInfo> ReadLinkInfo(BpfSys& sys, int link_fd,
                                      LinkDetail detail) {
  return Asker(sys, link_fd).Ask(detail);
}

}  // namespace ksweep
