#include "lib/attach/features/probe_program.h"

#include <linux/bpf.h>

#include <cerrno>
#include <cstring>

namespace ksweep {
namespace {

// The verifier gives up with EAGAIN when a signal comes.
constexpr int kMaxTries = 5;

constexpr char kLicense[] = "Dual BSD/GPL";
constexpr char kName[] = "ksweep_probe";

constexpr bpf_insn kReturnZero[] = {
    {BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0},
    {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
};

ProgLoadAttr AttrFor(const ProbeProgram& program) {
  ProgLoadAttr attr;
  attr.prog_type = program.prog_type;
  attr.insn_cnt = sizeof(kReturnZero) / sizeof(kReturnZero[0]);
  attr.insns = reinterpret_cast<uintptr_t>(kReturnZero);
  attr.license = reinterpret_cast<uintptr_t>(kLicense);
  attr.expected_attach_type = program.attach_type;
  attr.attach_btf_id = program.attach_btf_id;
  static_assert(sizeof(kName) <= sizeof(attr.prog_name));
  std::memcpy(attr.prog_name, kName, sizeof(kName));
  return attr;
}

}  // namespace

LoadedProbe LoadProbeProgram(BpfSys& sys, const ProbeProgram& program) {
  ProgLoadAttr attr = AttrFor(program);
  int result = -EAGAIN;
  for (int i = 0; i < kMaxTries && result == -EAGAIN; ++i) {
    result = sys.Bpf(kBpfProgLoad, &attr, sizeof(attr));
  }
  LoadedProbe loaded;
  if (result < 0) {
    loaded.err = -result;
  } else {
    loaded.fd = UniqueFd(result);
  }
  return loaded;
}

}  // namespace ksweep
