#include "lib/attach/programs/prepare.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "ksweep/attach.h"
#include "lib/base/bpf_sys.h"
#include "selftests/testing/bpf_elf.h"

namespace ksweep {
namespace {

using ::testing::HasSubstr;

constexpr auto kSession = static_cast<bpf_attach_type>(kBpfTraceKprobeSession);

// An object with one program, opened and not loaded. No kernel is asked.
class OpenObject {
 public:
  explicit OpenObject(const std::string& section)
      : elf_(BuildBpfElf({{section, "prog"}})),
        object_(bpf_object__open_mem(elf_.data(), elf_.size(), nullptr)) {}
  ~OpenObject() { bpf_object__close(object_); }
  OpenObject(const OpenObject&) = delete;
  OpenObject& operator=(const OpenObject&) = delete;

  bpf_program* prog() {
    return bpf_object__find_program_by_name(object_, "prog");
  }

  // "Loads" into a loader program instead of into the kernel. libbpf then
  // takes the object for loaded, though its programs have no descriptors.
  int LoadWithoutKernel() {
    LIBBPF_OPTS(gen_loader_opts, loader);
    if (bpf_object__gen_loader(object_, &loader) != 0) return -1;
    return bpf_object__load(object_);
  }

 private:
  std::string elf_;
  bpf_object* object_;
};

struct PrepareCase {
  const char* section;
  Kind kind;
  uint32_t attach_type = kBpfTraceKprobeMulti;
};

constexpr PrepareCase kPrepareCases[] = {
    {"kprobe.multi", Kind::kKprobeMulti},
    {"kprobe.multi", Kind::kKretprobeMulti},
    {"kprobe.multi/vfs_*", Kind::kKprobeMulti},
    {"kretprobe.multi", Kind::kKprobeMulti},
    {"kretprobe.multi", Kind::kKretprobeMulti},
    // Some versions of libbpf know it, others do not.
    {"kprobe.session", Kind::kKprobeMulti},
    // Another attach type, or a name that libbpf does not know.
    {"kprobe", Kind::kKprobeMulti},
    {"kprobe/vfs_read", Kind::kKprobeMulti},
    {"?kprobe", Kind::kKretprobeMulti},
    {"usdt", Kind::kKprobeMulti},
    {"ours", Kind::kKprobeMulti},
    {"kprobe.session", Kind::kKprobeSession, kBpfTraceKprobeSession},
    {"kprobe.session/vfs_*", Kind::kKprobeSession, kBpfTraceKprobeSession},
    {"?kprobe.session", Kind::kKprobeSession, kBpfTraceKprobeSession},
    {"kprobe.multi", Kind::kKprobeSession, kBpfTraceKprobeSession},
    {"kprobe/vfs_read", Kind::kKprobeSession, kBpfTraceKprobeSession},
};

TEST(PrepareProgram, Cases) {
  for (const PrepareCase& c : kPrepareCases) {
    OpenObject object(c.section);
    ASSERT_NE(object.prog(), nullptr) << c.section;
    const absl::Status status = PrepareProgram(object.prog(), c.kind);
    EXPECT_TRUE(status.ok()) << c.section << ": " << status;
    EXPECT_EQ(bpf_program__type(object.prog()), BPF_PROG_TYPE_KPROBE)
        << c.section;
    EXPECT_EQ(
        static_cast<uint32_t>(bpf_program__expected_attach_type(object.prog())),
        c.attach_type)
        << c.section;
  }
}

TEST(PrepareProgram, TwiceIsFine) {
  OpenObject object("kprobe");
  EXPECT_TRUE(PrepareProgram(object.prog(), Kind::kKprobeMulti).ok());
  EXPECT_TRUE(PrepareProgram(object.prog(), Kind::kKprobeMulti).ok());
  // Both are one kind of program; one can be attached both ways.
  EXPECT_TRUE(PrepareProgram(object.prog(), Kind::kKretprobeMulti).ok());
}

TEST(PrepareProgram, LibbpfAcceptsThePreparedProgram) {
  for (const PrepareCase& c : kPrepareCases) {
    OpenObject object(c.section);
    ASSERT_TRUE(PrepareProgram(object.prog(), c.kind).ok()) << c.section;
    EXPECT_EQ(object.LoadWithoutKernel(), 0) << c.section;
    EXPECT_EQ(
        static_cast<uint32_t>(bpf_program__expected_attach_type(object.prog())),
        c.attach_type)
        << c.section;
  }
}

struct SectionCase {
  const char* section;
  const char* want;
};

constexpr SectionCase kSectionCases[] = {
    {"fentry/vfs_read",
     "SEC(\"fentry/vfs_read\"), which libbpf loads as type "
     "tracing (26)"},
    {"?fexit/vfs_read", "type tracing (26)"},
    {"tp/syscalls/sys_enter_read", "type tracepoint (5)"},
    {"xdp", "type xdp (6)"},
    {"uprobe.s/ls:main", "sleepable"},
    {"fentry.s/vfs_read", "sleepable"},
};

// libbpf 1.1 would crash at load for the first.
TEST(PrepareProgram, SectionsOfOtherTypesAreRefused) {
  for (const SectionCase& c : kSectionCases) {
    OpenObject object(c.section);
    const absl::Status status =
        PrepareProgram(object.prog(), Kind::kKretprobeMulti);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << c.section;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.want));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("use SEC(\"kretprobe.multi\")"));
  }
}

TEST(PrepareProgram, NoProgram) {
  EXPECT_EQ(PrepareProgram(nullptr, Kind::kKprobeMulti).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PrepareProgram, LoadedIsRefused) {
  OpenObject object("kprobe.multi");
  ASSERT_EQ(object.LoadWithoutKernel(), 0);
  const absl::Status status = PrepareProgram(object.prog(), Kind::kKprobeMulti);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'prog'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("loaded already"));
}

constexpr uint32_t kMultiTypes[] = {kBpfTraceFentryMulti, kBpfTraceFexitMulti,
                                    kBpfTraceFsessionMulti};

TEST(PrepareProgram, TracingMulti) {
  for (const char* section : {"fentry.multi", "fexit.multi/vfs_*", "ours"}) {
    for (uint32_t attach_type : kMultiTypes) {
      const auto kind =
          static_cast<Kind>(static_cast<uint32_t>(Kind::kFentryMulti) +
                            attach_type - kBpfTraceFentryMulti);
      OpenObject object(section);
      const absl::Status status = PrepareProgram(object.prog(), kind);
      ASSERT_TRUE(status.ok()) << section << ": " << status;
      EXPECT_EQ(bpf_program__type(object.prog()), BPF_PROG_TYPE_TRACING);
      EXPECT_EQ(static_cast<uint32_t>(
                    bpf_program__expected_attach_type(object.prog())),
                attach_type);
      EXPECT_EQ(bpf_program__flags(object.prog()), 0u);
      EXPECT_EQ(object.LoadWithoutKernel(), 0);
    }
  }
}

TEST(PrepareProgram, SleepableTracingMulti) {
  OpenObject object("fentry.multi.s");
  ASSERT_TRUE(PrepareProgram(object.prog(), Kind::kFentryMulti).ok());
  EXPECT_EQ(bpf_program__flags(object.prog()),
            static_cast<uint32_t>(BPF_F_SLEEPABLE));
}

// libbpf would look for the target of such a section, and there is none.
TEST(PrepareProgram, TracingMultiInASectionWithATarget) {
  for (const char* section : {"fentry", "fentry/vfs_read", "fexit.s/vfs_read",
                              "kprobe.multi", "tp_btf/sched_switch"}) {
    OpenObject object(section);
    const absl::Status status =
        PrepareProgram(object.prog(), Kind::kFentryMulti);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << section;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("use SEC(\"fentry.multi\")"));
  }
}

struct TwiceCase {
  const char* section;
  Kind first, second;
};

// Also where the first is what the section stands for, and with either
// knowledge of libbpf about sections.
constexpr TwiceCase kTwiceCases[] = {
    {"kprobe.multi", Kind::kKprobeMulti, Kind::kKprobeSession},
    {"kprobe.multi", Kind::kKretprobeMulti, Kind::kKprobeSession},
    {"kprobe.multi", Kind::kKprobeSession, Kind::kKprobeMulti},
    {"kprobe.session", Kind::kKprobeSession, Kind::kKretprobeMulti},
    {"kprobe.session", Kind::kKprobeMulti, Kind::kKprobeSession},
    {"kprobe", Kind::kKprobeMulti, Kind::kKprobeSession},
    {"ours", Kind::kKprobeSession, Kind::kKprobeMulti},
};

void ExpectSecondKindIsRefused(const TwiceCase& c) {
  OpenObject object(c.section);
  ASSERT_TRUE(PrepareProgram(object.prog(), c.first).ok()) << c.section;
  const auto before = bpf_program__expected_attach_type(object.prog());
  const absl::Status status = PrepareProgram(object.prog(), c.second);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
      << c.section << ": " << KindName(c.second);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("prepared for another kind"));
  EXPECT_EQ(bpf_program__expected_attach_type(object.prog()), before);
  EXPECT_TRUE(PrepareProgram(object.prog(), c.first).ok()) << c.section;
}

TEST(PrepareProgram, BugCase55_ASecondKindIsRefused) {
  for (const TwiceCase& c : kTwiceCases) ExpectSecondKindIsRefused(c);
}

TEST(PrepareProgram, BugCase55_ASecondKindIsRefusedWithSectionsRegistered) {
  // For ever: unregistering the last handler makes libbpf 1.1 crash.
  const int first = libbpf_register_prog_handler(
      "ksweep_prepare_test", BPF_PROG_TYPE_KPROBE, bpf_attach_type{}, nullptr);
  ASSERT_GT(first, 0);
  const int session = libbpf_register_prog_handler(
      "kprobe.session+", BPF_PROG_TYPE_KPROBE, kSession, nullptr);
  ASSERT_GT(session, 0);
  for (const TwiceCase& c : kTwiceCases) ExpectSecondKindIsRefused(c);
  EXPECT_EQ(libbpf_unregister_prog_handler(session), 0);
}

TEST(PrepareProgram, AutoAttachOffIsNoChoiceInASectionOfNoKind) {
  OpenObject object("kprobe/vfs_read");
  bpf_program__set_autoattach(object.prog(), false);
  EXPECT_TRUE(PrepareProgram(object.prog(), Kind::kKprobeSession).ok());
  EXPECT_FALSE(bpf_program__autoattach(object.prog()));
}

struct OtherKindCase {
  const char* section;
  bpf_prog_type type;
  bpf_attach_type attach_type;
  const char* want;
};

constexpr OtherKindCase kOtherKindCases[] = {
    {"kprobe.multi", BPF_PROG_TYPE_KPROBE, kSession, "56"},
    {"kprobe", BPF_PROG_TYPE_KPROBE, kSession, "56"},
    {"kprobe.multi", BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, "trace_fentry"},
    {"ours", BPF_PROG_TYPE_KPROBE, bpf_attach_type{}, "without attach type"},
};

TEST(PrepareProgram, BugCase55_ProgramOfAnotherKindIsRefused) {
  for (const OtherKindCase& c : kOtherKindCases) {
    OpenObject object(c.section);
    ASSERT_EQ(bpf_program__set_type(object.prog(), c.type), 0);
    ASSERT_EQ(
        bpf_program__set_expected_attach_type(object.prog(), c.attach_type), 0);
    const absl::Status status =
        PrepareProgram(object.prog(), Kind::kKprobeMulti);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << c.section;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("prepared for another kind"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.want));
    // Nothing was changed.
    EXPECT_EQ(bpf_program__type(object.prog()), c.type);
    EXPECT_EQ(bpf_program__expected_attach_type(object.prog()), c.attach_type);
  }
}

// The check of Attach(), before it makes any call.
TEST(CheckProgram, BugCase55_ProgramOfAnotherKindIsRefused) {
  const KindAbi abi = AbiOf(Kind::kKretprobeMulti);
  OpenObject object("kprobe/vfs_read");
  const absl::Status status = CheckProgram(*object.prog(), abi);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("type kprobe (2) without attach type"));
  EXPECT_THAT(message, HasSubstr("kretprobe.multi needs"));
  EXPECT_THAT(message, HasSubstr("attach type trace_kprobe_multi (42)"));
  EXPECT_THAT(message, HasSubstr("PrepareProgram()"));
}

TEST(CheckProgram, NotLoadedIsRefused) {
  const KindAbi abi = AbiOf(Kind::kKprobeMulti);
  OpenObject object("kprobe");
  ASSERT_TRUE(PrepareProgram(object.prog(), Kind::kKprobeMulti).ok());
  const absl::Status status = CheckProgram(*object.prog(), abi);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not loaded"));
}

}  // namespace
}  // namespace ksweep
