// The one door to bpf(2). Tests put a fake behind it.

#ifndef KSWEEP_LIB_BASE_BPF_SYS_H_
#define KSWEEP_LIB_BASE_BPF_SYS_H_

#include <cstddef>
#include <cstdint>

namespace ksweep {

// Commands of bpf(2) that are used here; linux/bpf.h of the oldest supported
// system lacks some of the numbers and structures, so ours stand for all.
inline constexpr int kBpfProgLoad = 5;
inline constexpr int kBpfObjPin = 6;
inline constexpr int kBpfObjGet = 7;
inline constexpr int kBpfProgGetFdById = 13;
inline constexpr int kBpfObjGetInfoByFd = 15;
inline constexpr int kBpfBtfGetFdById = 19;
inline constexpr int kBpfBtfGetNextId = 23;
inline constexpr int kBpfLinkCreate = 28;

// enum bpf_attach_type.
inline constexpr uint32_t kBpfTraceFentry = 24;
inline constexpr uint32_t kBpfTraceFexit = 25;
inline constexpr uint32_t kBpfPerfEvent = 41;
inline constexpr uint32_t kBpfTraceKprobeMulti = 42;
inline constexpr uint32_t kBpfTraceKprobeSession = 56;
inline constexpr uint32_t kBpfTraceFsession = 58;
inline constexpr uint32_t kBpfTraceFentryMulti = 59;
inline constexpr uint32_t kBpfTraceFexitMulti = 60;
inline constexpr uint32_t kBpfTraceFsessionMulti = 61;

// enum bpf_prog_type.
inline constexpr uint32_t kBpfProgTypeKprobe = 2;
inline constexpr uint32_t kBpfProgTypeTracing = 26;

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

// union bpf_attr for BPF_LINK_CREATE with link_create.perf_event.
struct PerfLinkAttr {
  uint32_t prog_fd = 0;
  uint32_t target_fd = 0;  // of the perf event
  uint32_t attach_type = 0;
  uint32_t link_flags = 0;
  uint64_t cookie = 0;
};
static_assert(sizeof(PerfLinkAttr) == 24);

// union bpf_attr for BPF_LINK_CREATE with link_create.tracing, to the target
// that the program was loaded for.
struct TracingLinkAttr {
  uint32_t prog_fd = 0;
  uint32_t target_fd = 0;
  uint32_t attach_type = 0;
  uint32_t link_flags = 0;
  uint32_t target_btf_id = 0;
  uint32_t pad = 0;
  uint64_t cookie = 0;
};
static_assert(sizeof(TracingLinkAttr) == 32);

// union bpf_attr for BPF_LINK_CREATE with link_create.tracing_multi.
struct TracingMultiLinkAttr {
  uint32_t prog_fd = 0;
  uint32_t target_fd = 0;
  uint32_t attach_type = 0;
  uint32_t link_flags = 0;
  uint64_t ids = 0;      // const uint32_t*
  uint64_t cookies = 0;  // const uint64_t*
  uint32_t cnt = 0;
  uint32_t pad = 0;
};
static_assert(sizeof(TracingMultiLinkAttr) == 40);

// union bpf_attr for BPF_PROG_LOAD, up to what is used here.
struct ProgLoadAttr {
  uint32_t prog_type = 0;
  uint32_t insn_cnt = 0;
  uint64_t insns = 0;    // const bpf_insn*
  uint64_t license = 0;  // const char*
  uint32_t log_level = 0;
  uint32_t log_size = 0;
  uint64_t log_buf = 0;
  uint32_t kern_version = 0;
  uint32_t prog_flags = 0;
  char prog_name[16] = {};
  uint32_t prog_ifindex = 0;
  uint32_t expected_attach_type = 0;
  uint32_t prog_btf_fd = 0;
  uint32_t func_info_rec_size = 0;
  uint64_t func_info = 0;
  uint32_t func_info_cnt = 0;
  uint32_t line_info_rec_size = 0;
  uint64_t line_info = 0;
  uint32_t line_info_cnt = 0;
  uint32_t attach_btf_id = 0;
  uint32_t attach_btf_obj_fd = 0;
  uint32_t pad = 0;
};
static_assert(sizeof(ProgLoadAttr) == 120);

// union bpf_attr for BPF_OBJ_PIN and BPF_OBJ_GET.
struct ObjPinAttr {
  uint64_t pathname = 0;  // const char*
  uint32_t bpf_fd = 0;
  uint32_t file_flags = 0;
};
static_assert(sizeof(ObjPinAttr) == 16);

// union bpf_attr for BPF_PROG_GET_FD_BY_ID, BPF_BTF_GET_FD_BY_ID and
// BPF_BTF_GET_NEXT_ID.
struct IdAttr {
  uint32_t id = 0;  // for the next one: start after it
  uint32_t next_id = 0;
  uint32_t open_flags = 0;
};
static_assert(sizeof(IdAttr) == 12);

// union bpf_attr for BPF_OBJ_GET_INFO_BY_FD.
struct ObjInfoAttr {
  uint32_t bpf_fd = 0;
  uint32_t info_len = 0;
  uint64_t info = 0;
};
static_assert(sizeof(ObjInfoAttr) == 16);

// struct bpf_btf_info.
struct BtfInfo {
  uint64_t btf = 0;
  uint32_t btf_size = 0;
  uint32_t id = 0;
  uint64_t name = 0;      // char*
  uint32_t name_len = 0;  // in: room for the name, NUL included
  uint32_t kernel_btf = 0;
};
static_assert(sizeof(BtfInfo) == 32);

// struct bpf_prog_info, up to what is used here.
struct ProgInfo {
  uint32_t type = 0;
  uint32_t id = 0;
  uint8_t tag[8] = {};
  uint32_t jited_len = 0;
  uint32_t xlated_len = 0;
  uint64_t jited_insns = 0;
  uint64_t xlated_insns = 0;
  uint64_t load_time = 0;
  uint32_t created_by_uid = 0;
  uint32_t map_cnt = 0;
  uint64_t map_ids = 0;
  char name[16] = {};
  uint32_t ifindex = 0;
  uint32_t flags = 0;
};
static_assert(sizeof(ProgInfo) == 88);
inline constexpr uint32_t kProgInfoGplCompatible = 1u << 0;

// enum bpf_link_type.
inline constexpr uint32_t kBpfLinkTypeTracing = 2;
inline constexpr uint32_t kBpfLinkTypePerfEvent = 7;
inline constexpr uint32_t kBpfLinkTypeKprobeMulti = 8;
inline constexpr uint32_t kBpfLinkTypeTracingMulti = 15;

// Parts of struct bpf_link_info. Older kernels fill only the front.
struct KprobeMultiInfo {
  uint64_t addrs;
  uint32_t cnt;
  uint32_t flags;
  uint64_t missed;
  uint64_t cookies;
};

struct TracingMultiInfo {
  uint32_t attach_type;
  uint32_t cnt;
  uint32_t btf_obj_id;
  uint32_t pad;
  uint64_t ids;
  uint64_t addrs;
  uint64_t cookies;
};

struct PerfKprobeInfo {
  uint32_t perf_type;
  uint32_t pad;
  uint64_t func_name;
  uint32_t name_len;
  uint32_t offset;
  uint64_t addr;
  uint64_t missed;
  uint64_t cookie;
};

struct TracingInfo {
  uint32_t attach_type;
  uint32_t target_obj_id;
  uint32_t target_btf_id;
  uint32_t pad;
  uint64_t cookie;
};

// struct bpf_link_info.
struct LinkInfoBuffer {
  uint32_t type = 0;
  uint32_t id = 0;
  uint32_t prog_id = 0;
  uint32_t pad = 0;
  union {
    KprobeMultiInfo kprobe_multi;
    TracingMultiInfo tracing_multi;
    PerfKprobeInfo perf_kprobe;
    TracingInfo tracing;
    uint64_t words[6] = {};
  };
};
static_assert(sizeof(LinkInfoBuffer) == 64);

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
