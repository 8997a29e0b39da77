// Programs whose section name alone says what they are, loaded for real.

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ksweep/attach.h"
#include "ksweep/sections.h"
#include "ksweep/session.h"
#include "lib/base/unique_fd.h"
#include "selftests/kernel/kernel_test_util.h"
#include "selftests/testing/bpf_elf.h"
#include "session.ctx.skel.h"
#include "session.skel.h"

namespace ksweep {
namespace {

using testing::TriggerGetppid;

// What getppid(2) calls, and is in the kernel's BTF.
constexpr char kGetppid[] = "__do_sys_getppid";

// Whether the kernel's BTF has the enumerator: of an attach type that always
// works where it exists.
bool KernelHasAttachType(const std::string& name) {
  btf* kernel_btf = btf__load_vmlinux_btf();
  EXPECT_NE(kernel_btf, nullptr);
  const __s32 id =
      btf__find_by_name_kind(kernel_btf, "bpf_attach_type", BTF_KIND_ENUM);
  EXPECT_GT(id, 0);
  const btf_type* type = btf__type_by_id(kernel_btf, static_cast<__u32>(id));
  bool found = false;
  for (int i = 0; i < btf_vlen(type); ++i) {
    found |=
        btf__name_by_offset(kernel_btf, btf_enum(type)[i].name_off) == name;
  }
  btf__free(kernel_btf);
  return found;
}

// An object with one program that returns 0, in SEC(section).
class OneProgram {
 public:
  explicit OneProgram(const std::string& section)
      : elf_(BuildBpfElf({{section, "prog"}})),
        object_(bpf_object__open_mem(elf_.data(), elf_.size(), nullptr)) {}
  ~OneProgram() { bpf_object__close(object_); }
  OneProgram(const OneProgram&) = delete;
  OneProgram& operator=(const OneProgram&) = delete;

  bpf_program* prog() const {
    return bpf_object__find_program_by_name(object_, "prog");
  }
  int Load() const { return bpf_object__load(object_); }
  // For one that has to fail.
  int LoadQuietly() const {
    const libbpf_print_fn_t printer = libbpf_set_print(nullptr);
    const int err = Load();
    libbpf_set_print(printer);
    return err;
  }

  // Needs bpf_enable_stats().
  uint64_t Runs() const {
    bpf_prog_info info = {};
    __u32 size = sizeof(info);
    EXPECT_EQ(bpf_obj_get_info_by_fd(bpf_program__fd(prog()), &info, &size), 0);
    return info.run_cnt;
  }

 private:
  std::string elf_;
  bpf_object* object_;
};

class SectionsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const absl::Status status = RegisterSections();
    ASSERT_TRUE(status.ok()) << status;
  }
};

struct LoadCase {
  const char* section;
  const char* attach_type;
  int if_lacking;  // what the load gives on a kernel without it
};

constexpr LoadCase kLoadCases[] = {
    {"fentry.multi", "BPF_TRACE_FENTRY_MULTI", -EINVAL},
    {"fentry.multi/vfs_*", "BPF_TRACE_FENTRY_MULTI", -EINVAL},
    {"fentry.multi.s", "BPF_TRACE_FENTRY_MULTI", -EINVAL},
    {"fexit.multi", "BPF_TRACE_FEXIT_MULTI", -EINVAL},
    {"fexit.multi/vfs_*", "BPF_TRACE_FEXIT_MULTI", -EINVAL},
    {"fsession.multi", "BPF_TRACE_FSESSION_MULTI", -EINVAL},
    {"fsession.multi.s/vfs_*", "BPF_TRACE_FSESSION_MULTI", -EINVAL},
    {"fsession/vfs_read", "BPF_TRACE_FSESSION", -EINVAL},
    // Needs a function, here as with SEC("fentry").
    {"fsession/ksweep_no_such_function", "no such type", -ENOENT},
    // Loads on any kernel; that it cannot be attached shows at the link.
    {"kprobe.session", "BPF_TRACE_KPROBE_SESSION", 0},
    {"kprobe.session/vfs_*", "BPF_TRACE_KPROBE_SESSION", 0},
    {"kprobe.multi", "BPF_TRACE_KPROBE_MULTI", 0},
};

TEST_F(SectionsTest, LoadWithoutBeingPrepared) {
  for (const LoadCase& c : kLoadCases) {
    OneProgram program(c.section);
    ASSERT_NE(program.prog(), nullptr) << c.section;
    const bool has = KernelHasAttachType(c.attach_type);
    EXPECT_EQ(has ? program.Load() : program.LoadQuietly(),
              has ? 0 : c.if_lacking)
        << c.section;
    printf("SEC(\"%s\"): %s\n", c.section, has ? "loaded" : "lacking");
  }
}

TEST_F(SectionsTest, FsessionRunsAtBothEndsOfItsFunction) {
  if (!KernelHasAttachType("BPF_TRACE_FSESSION")) {
    GTEST_SKIP() << "this kernel has no fsession (Linux 7.0)";
  }
  OneProgram program(std::string("fsession/") + kGetppid);
  ASSERT_EQ(program.Load(), 0);
  const UniqueFd stats(bpf_enable_stats(BPF_STATS_RUN_TIME));
  ASSERT_GE(stats.get(), 0);
  {
    const UniqueFd link(
        bpf_raw_tracepoint_open(nullptr, bpf_program__fd(program.prog())));
    ASSERT_GE(link.get(), 0) << errno;
    TriggerGetppid(10);
    EXPECT_EQ(program.Runs(), 20u);
  }
  TriggerGetppid(10);
  EXPECT_EQ(program.Runs(), 20u);
}

// A function that bpf_program__set_attach_target() chose stays chosen.
TEST_F(SectionsTest, FsessionOfAChosenFunction) {
  if (!KernelHasAttachType("BPF_TRACE_FSESSION")) {
    GTEST_SKIP() << "this kernel has no fsession (Linux 7.0)";
  }
  OneProgram program("fsession/ksweep_no_such_function");
  ASSERT_EQ(bpf_program__set_attach_target(program.prog(), 0, kGetppid), 0);
  EXPECT_EQ(program.Load(), 0);
}

TEST_F(SectionsTest, SessionAttachesWithoutBeingPrepared) {
  if (!testing::KernelHas("CONFIG_FPROBE")) {
    GTEST_SKIP() << "this kernel is built without CONFIG_FPROBE";
  }
  absl::StatusOr<SessionSkeleton<session_bpf>> skeleton =
      OpenSessionSkeleton<session_bpf, session_ctx_bpf>(
          session_bpf__create_skeleton);
  ASSERT_TRUE(skeleton.ok()) << skeleton.status();
  ASSERT_EQ(session_bpf__load(skeleton->get()), 0);
  // It is not libbpf's to attach it.
  EXPECT_EQ(session_bpf__attach(skeleton->get()), 0);
  EXPECT_EQ((*skeleton)->links.count_both_ends, nullptr);
  AttachOptions options;
  options.kind = Kind::kKprobeSession;
  ResolveOptions resolve;
  resolve.kinds = {Kind::kKprobeSession};
  const Resolution resolution = testing::ResolveHere({kGetppid}, resolve);
  absl::StatusOr<Attachment> attachment =
      Attach(resolution, (*skeleton)->progs.count_both_ends, options);
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  const uint64_t before = (*skeleton)->bss->all_runs;
  TriggerGetppid(10);
  EXPECT_GE((*skeleton)->bss->all_runs - before, 20u);
}

}  // namespace
}  // namespace ksweep
