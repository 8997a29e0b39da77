// The one door to bpf(2). Tests put a fake behind it.

#ifndef KSWEEP_LIB_BASE_BPF_SYS_H_
#define KSWEEP_LIB_BASE_BPF_SYS_H_

#include <cstddef>
#include <cstdint>

namespace ksweep {

// Commands of bpf(2) that are used here; linux/bpf.h of the oldest supported
// system lacks some of the numbers and structures, so ours stand for all.
inline constexpr int kBpfObjGetInfoByFd = 15;
inline constexpr int kBpfLinkCreate = 28;

// enum bpf_attach_type.
inline constexpr uint32_t kBpfTraceKprobeMulti = 42;
inline constexpr uint32_t kBpfTraceKprobeSession = 56;

// enum bpf_prog_type.
inline constexpr uint32_t kBpfProgTypeKprobe = 2;

inline constexpr uint32_t kBpfKprobeMultiReturn = 1u << 0;

// union bpf_attr for BPF_LINK_CREATE with link_create.kprobe_multi, up to its
// last member: a kernel refuses bytes that it does not know.
struct KprobeMultiLinkAttr {
  uint32_t prog_fd = 0;
  uint32_t target_fd = 0;
  uint32_t attach_type = 0;
  uint32_t link_flags = 0;
  uint32_t flags = 0;
  uint32_t cnt = 0;
  uint64_t syms = 0;     // const char* const*
  uint64_t addrs = 0;    // const unsigned long*, of the kernel's width
  uint64_t cookies = 0;  // const uint64_t*
};
static_assert(sizeof(KprobeMultiLinkAttr) == 48);

// union bpf_attr for BPF_OBJ_GET_INFO_BY_FD.
struct ObjInfoAttr {
  uint32_t bpf_fd = 0;
  uint32_t info_len = 0;
  uint64_t info = 0;
};
static_assert(sizeof(ObjInfoAttr) == 16);

// struct bpf_link_info with .kprobe_multi. Older kernels fill only the front.
struct KprobeMultiLinkInfo {
  uint32_t type = 0;
  uint32_t id = 0;
  uint32_t prog_id = 0;
  uint32_t pad = 0;
  uint64_t addrs = 0;
  uint32_t cnt = 0;
  uint32_t flags = 0;
  uint64_t missed = 0;
  uint64_t cookies = 0;
};
static_assert(sizeof(KprobeMultiLinkInfo) == 48);

// Thread-safe.
class BpfSys {
 public:
  virtual ~BpfSys() = default;

  // bpf(cmd, attr, size): what it returns, or the negative errno.
  virtual int Bpf(int cmd, void* attr, size_t size) = 0;

  // The kernel. Lives for ever.
  static BpfSys& Kernel();
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_BASE_BPF_SYS_H_
