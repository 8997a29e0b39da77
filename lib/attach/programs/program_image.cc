#include "lib/attach/programs/program_image.h"

#include <bpf/libbpf.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/attach/programs/prepare.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

// The verifier gives up with EAGAIN when a signal comes.
constexpr int kMaxTries = 5;

// For the verifier's text. Kernels before 6.4 refuse a load whose log does not
// fit, newer ones keep the end of it.
constexpr size_t kLogBytes = size_t{1} << 16;

bool IsWideLoad(const bpf_insn& insn) {
  return insn.code == (BPF_LD | BPF_IMM | BPF_DW);
}

bool HasMapFd(const bpf_insn& insn) {
  return IsWideLoad(insn) && (insn.src_reg == BPF_PSEUDO_MAP_FD ||
                              insn.src_reg == BPF_PSEUDO_MAP_VALUE);
}

bool IsCallback(const bpf_insn& insn) {
  return IsWideLoad(insn) && insn.src_reg == BPF_PSEUDO_FUNC;
}

// The descriptor of a module's BTF, which a kfunc's number counts in, is given
// beside the instructions and not in them.
bool CallsModule(const bpf_insn& insn) {
  return insn.code == (BPF_JMP | BPF_CALL) &&
         insn.src_reg == BPF_PSEUDO_KFUNC_CALL && insn.off != 0;
}

absl::Status Unloadable(const ProgramImage& image, const char* why) {
  return absl::UnimplementedError(absl::StrFormat(
      "program '%s' has to be loaded once more, for the BTF of a module or for "
      "each function, and cannot: %s",
      image.name, why));
}

ProgLoadAttr AttrFor(const ProgramImage& image,
                     const TrampolineTarget& target) {
  ProgLoadAttr attr;
  attr.prog_type = image.prog_type;
  attr.insn_cnt = static_cast<uint32_t>(image.insns.size());
  attr.insns = reinterpret_cast<uintptr_t>(image.insns.data());
  attr.license = reinterpret_cast<uintptr_t>(
      image.gpl_compatible ? "Dual BSD/GPL" : "Proprietary");
  attr.prog_flags = image.prog_flags;
  image.name.copy(attr.prog_name, sizeof(attr.prog_name) - 1);
  attr.expected_attach_type = image.attach_type;
  attr.attach_btf_id = target.btf_id;
  attr.attach_btf_obj_fd = target.btf_obj_fd;
  return attr;
}

int Load(BpfSys& sys, ProgLoadAttr& attr) {
  int result = -EAGAIN;
  for (int i = 0; i < kMaxTries && result == -EAGAIN; ++i) {
    result = sys.Bpf(kBpfProgLoad, &attr, sizeof(attr));
  }
  return result;
}

// The last line that is about the program: "processed 0 insns …" is always
// there.
std::string LastLine(std::string_view log) {
  while (!log.empty()) {
    if (log.back() == '\n') log.remove_suffix(1);
    const size_t start = log.rfind('\n') + 1;  // npos + 1 is 0
    const std::string_view line = log.substr(start);
    if (!line.empty() && !line.starts_with("processed ")) {
      return std::string(line);
    }
    log = log.substr(0, start);
  }
  return "";
}

// Whether a load that failed with `err` has text to go with it.
bool IsTheVerifiers(int err) {
  return err == EINVAL || err == EACCES || err == ENOENT || err == EOPNOTSUPP;
}

std::string WhyRefused(BpfSys& sys, ProgLoadAttr attr) {
  std::vector<char> log(kLogBytes);
  attr.log_level = 1;
  attr.log_buf = reinterpret_cast<uintptr_t>(log.data());
  attr.log_size = static_cast<uint32_t>(log.size());
  // Of a load that goes well this time nothing is left.
  const UniqueFd loaded(Load(sys, attr));
  log.back() = '\0';
  return LastLine(log.data());
}

absl::StatusOr<ProgInfo> ReadProgInfo(BpfSys& sys, int fd,
                                      const std::string& name) {
  ProgInfo info;
  ObjInfoAttr attr;
  attr.bpf_fd = static_cast<uint32_t>(fd);
  attr.info_len = sizeof(info);
  attr.info = reinterpret_cast<uintptr_t>(&info);
  const int result = sys.Bpf(kBpfObjGetInfoByFd, &attr, sizeof(attr));
  if (result >= 0) return info;
  return ErrnoStatus(
      -result, absl::StrFormat("asking for the info of program '%s'", name));
}

}  // namespace

absl::StatusOr<ProgramImage> ReadProgramImage(BpfSys& sys,
                                              const bpf_program& prog) {
  ProgramImage image;
  image.name = bpf_program__name(&prog);
  const absl::StatusOr<ProgInfo> info =
      ReadProgInfo(sys, bpf_program__fd(&prog), image.name);
  if (!info.ok()) return info.status();
  const bpf_insn* insns = bpf_program__insns(&prog);
  image.insns.assign(insns, insns + bpf_program__insn_cnt(&prog));
  image.prog_type = bpf_program__type(&prog);
  image.attach_type =
      static_cast<uint32_t>(bpf_program__expected_attach_type(&prog));
  image.prog_flags = bpf_program__flags(&prog);
  // libbpf says so to the kernel and not to us.
  if (IsSleepable(prog)) image.prog_flags |= BPF_F_SLEEPABLE;
  image.gpl_compatible = (info->flags & kProgInfoGplCompatible) != 0;
  return image;
}

absl::Status OwnMaps(ProgramImage& image) {
  std::map<int, int> own;  // by the descriptor they are copies of
  for (bpf_insn& insn : image.insns) {
    if (!HasMapFd(insn)) continue;
    const auto [place, is_new] = own.emplace(insn.imm, -1);
    if (is_new) {
      UniqueFd map(fcntl(insn.imm, F_DUPFD_CLOEXEC, 0));
      if (!map.valid()) {
        const int err = errno;
        return ErrnoStatus(
            err, absl::StrFormat("keeping the maps of program '%s' for later "
                                 "updates",
                                 image.name));
      }
      place->second = map.get();
      image.maps.push_back(std::move(map));
    }
    insn.imm = place->second;
  }
  return absl::OkStatus();
}

absl::Status CheckReloadable(const ProgramImage& image) {
  const auto& insns = image.insns;
  if (std::any_of(insns.begin(), insns.end(), IsCallback)) {
    return Unloadable(image,
                      "it has callbacks, for which the kernel wants BTF of its "
                      "functions; write it without them, as with a loop");
  }
  if (std::any_of(insns.begin(), insns.end(), CallsModule)) {
    return Unloadable(image, "it calls kfuncs of a module");
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> LoadImage(BpfSys& sys, const ProgramImage& image,
                                   const TrampolineTarget& target) {
  ProgLoadAttr attr = AttrFor(image, target);
  const int result = Load(sys, attr);
  if (result >= 0) return UniqueFd(result);
  std::string what =
      absl::StrFormat("loading program '%s' once more", image.name);
  const std::string why =
      IsTheVerifiers(-result) ? WhyRefused(sys, attr) : std::string();
  if (!why.empty()) absl::StrAppendFormat(&what, ": the kernel says '%s'", why);
  return ErrnoStatus(-result, what);
}

}  // namespace ksweep
