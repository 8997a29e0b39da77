// Functions whose address is not the kernel's any more.

#include "lib/attach/linking/name_retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "ksweep/attach.h"
#include "selftests/testing/fake_bpf.h"
#include "selftests/unit/attach/attach_fixture.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;

// Functions 0 to 4 for a glob, of which 2 has moved to 70.
class NameRetryTest : public AttachFixture {
 protected:
  NameRetryTest() {
    fake_.AddFunction(AddrOf(170), "moved");
    options_.on_refused = OnRefused::kSkip;
    options_.retry_by_name = true;
  }

  Resolution Make() {
    ResolutionText text({Kind::kKprobeMulti}, {*Request::Parse("*")});
    for (size_t i = 0; i < 5; ++i) {
      Target& target = text.Add(i);
      if (i == 2) {
        target.name = "moved";
        target.addr = AddrOf(102);  // refused
      }
      target.requests = kFirst;
    }
    return text.Build();
  }

  static constexpr uint32_t kZero = 0;
  const absl::Span<const uint32_t> kFirst{&kZero, 1};
};

TEST_F(NameRetryTest, AMovedFunctionIsAttachedByName) {
  const auto attachment = Attach(Make());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_TRUE(attachment->refused().empty());
  EXPECT_TRUE(attachment->IsAttached(2));
  EXPECT_EQ(attachment->links().size(), 2u);
  bool by_name = false;
  for (const FakeBpfSys::Link& link : fake_.links()) {
    if (link.names.empty()) continue;
    EXPECT_THAT(link.names, ElementsAre("moved"));
    EXPECT_THAT(link.cookies, ElementsAre(2));
    by_name = true;
  }
  EXPECT_TRUE(by_name);
  EXPECT_TRUE(attachment->ReadBack()->matches()) << "at its present address";
}

TEST_F(NameRetryTest, OnlyIfAskedFor) {
  options_.retry_by_name = false;
  const auto attachment = Attach(Make());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  ASSERT_EQ(attachment->refused().size(), 1u);
  EXPECT_EQ(attachment->refused()[0].function, "moved");
}

TEST_F(NameRetryTest, RefusedByNameTooIsRefused) {
  fake_.RefuseAddr(AddrOf(3), ENOENT);
  ResolutionText text({Kind::kKprobeMulti}, {*Request::Parse("*")});
  for (size_t i = 0; i < 3; ++i) text.Add(i).requests = kFirst;
  Target& gone = text.Add(103);
  gone.requests = kFirst;
  const auto attachment = Attach(text.Build());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  ASSERT_EQ(attachment->refused().size(), 1u);
  EXPECT_EQ(attachment->refused()[0].err, ENOENT) << "the first errno";
  EXPECT_FALSE(attachment->IsAttached(3));
}

TEST_F(NameRetryTest, AlsoTheOnlyFunction) {
  ResolutionText text({Kind::kKprobeMulti}, {*Request::Parse("moved")});
  Target& target = text.Add(102);
  target.name = "moved";
  target.requests = kFirst;
  const auto attachment = Attach(text.Build());
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_TRUE(attachment->IsAttached(0));
}

struct CanRetryCase {
  const char* request;
  const char* module;
  Kind kind;
  int err;
  bool twin_target;
  bool twin_omission;
  const char* twin_module;
  bool want;
};

constexpr CanRetryCase kCanRetryCases[] = {
    {"f", "", Kind::kKprobeMulti, ENOENT, false, false, "", true},
    {"f", "", Kind::kKprobeMulti, EINVAL, false, false, "", true},
    {"f", "", Kind::kKprobeSession, ENOENT, false, false, "", true},
    {"f*", "m", Kind::kKretprobeMulti, ENOENT, false, false, "", true},
    {"vmlinux:f", "", Kind::kKprobeMulti, ENOENT, false, false, "", true},
    // The core kernel's function would be taken instead.
    {"m:f", "m", Kind::kKprobeMulti, ENOENT, false, false, "", false},
    // Nobody looked for others of its name.
    {"0xffffffff81000000", "", Kind::kKprobeMulti, ENOENT, false, false, "",
     false},
    // Another of its name: it might be the one that the kernel takes.
    {"f", "", Kind::kKprobeMulti, ENOENT, true, false, "", false},
    {"f", "", Kind::kKprobeMulti, ENOENT, false, true, "", false},
    {"f", "m", Kind::kKprobeMulti, ENOENT, true, false, "", false},
    // One in a module comes after the core kernel's.
    {"f", "", Kind::kKprobeMulti, ENOENT, true, false, "m", true},
    // Not about the address, or not by name.
    {"f", "", Kind::kKprobeMulti, EBUSY, false, false, "", false},
    {"f", "", Kind::kKprobe, ENOENT, false, false, "", false},
    {"f", "", Kind::kFentryMulti, ENOENT, false, false, "", false},
};

TEST(CanRetryByName, Cases) {
  for (const CanRetryCase& c : kCanRetryCases) {
    ResolutionText text({Kind::kKprobeMulti}, {*Request::Parse(c.request)});
    const uint32_t first = 0;
    Target& target = text.Add(0);
    target.name = "f";
    target.module = c.module;
    target.requests = {&first, 1};
    if (c.twin_target) {
      Target& twin = text.Add(1);
      twin.name = "f";
      twin.module = c.twin_module;
    }
    if (c.twin_omission) {
      Omission twin;
      twin.addr = AddrOf(1);
      twin.name = "f";
      twin.module = c.twin_module;
      text.builder().omissions().push_back(twin);
    }
    const Resolution resolution = text.Build();
    EXPECT_EQ(
        CanRetryByName(resolution, resolution.targets()[0], c.kind, c.err),
        c.want)
        << c.request << " " << c.module << " " << KindName(c.kind) << " "
        << c.err;
  }
}

}  // namespace
}  // namespace ksweep
