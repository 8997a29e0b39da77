#include "lib/attach/kinds/kprobe_pmu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "ksweep/status.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using testing::FakeKernel;
using ::testing::HasSubstr;

constexpr char kType[] = "sys/bus/event_source/devices/kprobe/type";
constexpr char kRetprobe[] =
    "sys/bus/event_source/devices/kprobe/format/retprobe";

struct Case {
  const char* type;
  const char* retprobe;
  uint32_t want_type;
  uint64_t want_config;
};

constexpr Case kCases[] = {
    {"6\n", "config:0\n", 6, 1},
    {"8", "config:0", 8, 1},
    {"11\n", "config:5\n", 11, 32},
    {"11\n", "config:63\n", 11, uint64_t{1} << 63},
};

TEST(KprobePmu, Read) {
  for (const Case& c : kCases) {
    FakeKernel kernel;
    kernel.WritePath(kType, c.type).WritePath(kRetprobe, c.retprobe);
    const absl::StatusOr<KprobePmu> pmu = ReadKprobePmu(kernel.files());
    ASSERT_TRUE(pmu.ok()) << pmu.status();
    EXPECT_EQ(pmu->type, c.want_type);
    EXPECT_EQ(pmu->retprobe_config, c.want_config);
  }
}

struct BadCase {
  const char* type;
  const char* retprobe;
};

constexpr BadCase kBadCases[] = {
    {"", "config:0\n"},
    {"x\n", "config:0\n"},
    {"6 7\n", "config:0\n"},
    {"-1\n", "config:0\n"},
    {"6\n", ""},
    {"6\n", "config1:0\n"},
    {"6\n", "config:\n"},
    {"6\n", "config:0-3\n"},
    {"6\n", "config:64\n"},
    {"99999999999\n", "config:0\n"},
};

TEST(KprobePmu, Malformed) {
  for (const BadCase& c : kBadCases) {
    FakeKernel kernel;
    kernel.WritePath(kType, c.type).WritePath(kRetprobe, c.retprobe);
    const absl::StatusOr<KprobePmu> pmu = ReadKprobePmu(kernel.files());
    EXPECT_EQ(pmu.status().code(), absl::StatusCode::kDataLoss)
        << c.type << c.retprobe;
    EXPECT_THAT(std::string(pmu.status().message()), HasSubstr(kernel.root()));
  }
}

TEST(KprobePmu, AbsentIsNoSuchFeature) {
  FakeKernel kernel;
  const absl::StatusOr<KprobePmu> pmu = ReadKprobePmu(kernel.files());
  EXPECT_EQ(pmu.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ErrnoOf(pmu.status()), ENOENT);
  EXPECT_THAT(std::string(pmu.status().message()),
              HasSubstr("CONFIG_KPROBE_EVENTS"));
}

}  // namespace
}  // namespace ksweep
