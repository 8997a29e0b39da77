#include "ksweep/sections.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ksweep/attach.h"
#include "ksweep/kind.h"
#include "lib/base/bpf_sys.h"
#include "selftests/testing/bpf_elf.h"

namespace ksweep {
namespace {

using ::testing::HasSubstr;

// A name that nobody else registers. Its id tells how many were registered
// before it: libbpf counts them.
int RegisterMarker() {
  const int id = libbpf_register_prog_handler(
      "ksweep_marker", BPF_PROG_TYPE_KPROBE, bpf_attach_type{}, nullptr);
  EXPECT_GT(id, 0);
  EXPECT_EQ(libbpf_unregister_prog_handler(id), 0);
  return id;
}

// libbpf's table is the process's, so each test leaves it as it was.
class RegisterSectionsTest : public ::testing::Test {
 protected:
  // Up to 1.1 at least, libbpf frees an empty table twice.
  static void SetUpTestSuite() {
    static const int id = libbpf_register_prog_handler(
        "ksweep_first", BPF_PROG_TYPE_KPROBE, bpf_attach_type{}, nullptr);
    ASSERT_GT(id, 0);
  }

  void SetUp() override { first_id_ = RegisterMarker() + 1; }

  void TearDown() override {
    const int end_id = RegisterMarker();
    // Some are unregistered by now.
    for (int id = first_id_; id < end_id; ++id) {
      libbpf_unregister_prog_handler(id);
    }
  }

 private:
  int first_id_ = 0;
};

struct LoadType {
  bpf_prog_type prog_type = BPF_PROG_TYPE_UNSPEC;
  uint32_t attach_type = 0;

  friend bool operator==(const LoadType&, const LoadType&) = default;
};

void PrintTo(const LoadType& type, std::ostream* out) {
  *out << "type " << type.prog_type << ", attach type " << type.attach_type;
}

// What libbpf makes of a program in SEC(section).
LoadType OpenIn(const std::string& section) {
  const std::string elf = BuildBpfElf({{section, "prog"}});
  bpf_object* object = bpf_object__open_mem(elf.data(), elf.size(), nullptr);
  if (object == nullptr) return {};
  const bpf_program* prog = bpf_object__find_program_by_name(object, "prog");
  const LoadType type{
      bpf_program__type(prog),
      static_cast<uint32_t>(bpf_program__expected_attach_type(prog))};
  bpf_object__close(object);
  return type;
}

struct SectionCase {
  const char* section;
  LoadType want;
};

constexpr LoadType kUnknown = {};
constexpr LoadType kSession = {BPF_PROG_TYPE_KPROBE, kBpfTraceKprobeSession};
constexpr LoadType kMulti = {BPF_PROG_TYPE_KPROBE, kBpfTraceKprobeMulti};
constexpr LoadType kFsession = {BPF_PROG_TYPE_TRACING, kBpfTraceFsession};
constexpr LoadType kFentryMulti = {BPF_PROG_TYPE_TRACING, kBpfTraceFentryMulti};
constexpr LoadType kFexitMulti = {BPF_PROG_TYPE_TRACING, kBpfTraceFexitMulti};
constexpr LoadType kFsessionMulti = {BPF_PROG_TYPE_TRACING,
                                     kBpfTraceFsessionMulti};

constexpr SectionCase kSectionCases[] = {
    {"kprobe.session", kSession},
    {"kprobe.session/vfs_*", kSession},
    {"?kprobe.session/vfs_*", kSession},
    {"fsession", kFsession},
    {"fsession/vfs_read", kFsession},
    {"fsession.s/vfs_read", kFsession},
    {"fentry.multi", kFentryMulti},
    {"fentry.multi/nf_tables:nft_*", kFentryMulti},
    {"fentry.multi.s", kFentryMulti},
    {"fexit.multi", kFexitMulti},
    {"fexit.multi.s/vfs_*", kFexitMulti},
    {"fsession.multi", kFsessionMulti},
    {"fsession.multi/vfs_*", kFsessionMulti},
    {"fsession.multi.s", kFsessionMulti},
    // Names that only begin like one.
    {"kprobe.sessions", kUnknown},
    {"fentry.multiple/x", kUnknown},
    {"fsession.x", kUnknown},
    // libbpf's own, as ever.
    {"kprobe.multi/vfs_*", kMulti},
    {"kretprobe.multi", kMulti},
    {"kprobe/vfs_read", {BPF_PROG_TYPE_KPROBE, 0}},
    {"fentry/vfs_read", {BPF_PROG_TYPE_TRACING, kBpfTraceFentry}},
    {"fexit.s/vfs_read", {BPF_PROG_TYPE_TRACING, kBpfTraceFexit}},
};

TEST_F(RegisterSectionsTest, Cases) {
  ASSERT_TRUE(RegisterSections().ok());
  for (const SectionCase& c : kSectionCases) {
    EXPECT_EQ(OpenIn(c.section), c.want) << c.section;
  }
}

// The names of the kinds are names of sections.
TEST_F(RegisterSectionsTest, EveryKindHasItsSection) {
  ASSERT_TRUE(RegisterSections().ok());
  for (int i = 0; i < kKindCnt; ++i) {
    const std::string name(KindName(static_cast<Kind>(i)));
    EXPECT_NE(OpenIn(name), kUnknown) << name;
  }
}

// How many of the newer sections nobody has registered.
int UnknownCnt() {
  const char* const kNewer[] = {
      "kprobe.session", "fsession",       "fsession.s",
      "fentry.multi",   "fentry.multi.s", "fexit.multi",
      "fexit.multi.s",  "fsession.multi", "fsession.multi.s",
  };
  int unknown = 0;
  for (const char* name : kNewer) unknown += OpenIn(name) == kUnknown;
  return unknown;
}

// Those that libbpf does not know by itself, and each once.
TEST_F(RegisterSectionsTest, OnlyWhatLibbpfDoesNotKnow) {
  const int unknown = UnknownCnt();
  const int before = RegisterMarker();
  ASSERT_TRUE(RegisterSections().ok());
  const int after = RegisterMarker();
  EXPECT_EQ(after - before - 1, unknown);
  ASSERT_TRUE(RegisterSections().ok());
  EXPECT_EQ(RegisterMarker() - after - 1, 0);
}

TEST_F(RegisterSectionsTest, AtOnceFromManyThreads) {
  const int unknown = UnknownCnt();
  const int before = RegisterMarker();
  std::vector<std::thread> threads;
  std::vector<absl::Status> results(8);
  for (absl::Status& result : results) {
    threads.emplace_back([&result] { result = RegisterSections(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(RegisterMarker() - before - 1, unknown);
  EXPECT_EQ(OpenIn("fexit.multi"), kFexitMulti);
}

// A caller's own handler for the same is as good.
TEST_F(RegisterSectionsTest, ACallersHandlerIsLeft) {
  ASSERT_GT(libbpf_register_prog_handler(
                "fentry.multi+", BPF_PROG_TYPE_TRACING,
                static_cast<bpf_attach_type>(kBpfTraceFentryMulti), nullptr),
            0);
  EXPECT_TRUE(RegisterSections().ok());
  EXPECT_EQ(OpenIn("fentry.multi"), kFentryMulti);
}

// For everything that nobody knows; it is no answer to a name of ours.
TEST_F(RegisterSectionsTest, ACallersFallbackIsLeft) {
  ASSERT_GT(libbpf_register_prog_handler(nullptr, BPF_PROG_TYPE_XDP,
                                         bpf_attach_type{}, nullptr),
            0);
  EXPECT_TRUE(RegisterSections().ok());
  EXPECT_EQ(OpenIn("fentry.multi"), kFentryMulti);
  EXPECT_EQ(OpenIn("ours").prog_type, BPF_PROG_TYPE_XDP);
}

TEST_F(RegisterSectionsTest, ACallersOtherHandlerIsAnError) {
  ASSERT_GT(libbpf_register_prog_handler("fexit.multi+", BPF_PROG_TYPE_XDP,
                                         bpf_attach_type{}, nullptr),
            0);
  const absl::Status status = RegisterSections();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("SEC(\"fexit.multi\")"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("PrepareProgram()"));
  EXPECT_EQ(OpenIn("fexit.multi").prog_type, BPF_PROG_TYPE_XDP);
}

// A section that stands for another type of program is no place for a kprobe.
TEST_F(RegisterSectionsTest, BugCase55_PrepareProgramRefusesTheOtherType) {
  ASSERT_TRUE(RegisterSections().ok());
  for (const char* section : {"fentry.multi", "fsession/vfs_read"}) {
    const std::string elf = BuildBpfElf({{section, "prog"}});
    bpf_object* object = bpf_object__open_mem(elf.data(), elf.size(), nullptr);
    ASSERT_NE(object, nullptr);
    bpf_program* prog = bpf_object__find_program_by_name(object, "prog");
    for (Kind kind : {Kind::kKprobeMulti, Kind::kKprobeSession}) {
      const absl::Status status = PrepareProgram(prog, kind);
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
          << section;
      EXPECT_THAT(std::string(status.message()), HasSubstr(section));
      EXPECT_THAT(std::string(status.message()), HasSubstr("tracing (26)"));
    }
    bpf_object__close(object);
  }
}

}  // namespace
}  // namespace ksweep
