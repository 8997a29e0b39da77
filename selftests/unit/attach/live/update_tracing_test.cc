// Updates of tracing_multi links, which the kernel wants closed first.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ksweep/attach.h"
#include "ksweep/status.h"
#include "lib/base/bpf_sys.h"
#include "selftests/testing/fake_bpf.h"
#include "selftests/testing/fake_tracing.h"
#include "selftests/unit/attach/attach_fixture.h"
#include "selftests/unit/attach/tracing_fixture.h"

namespace ksweep {
namespace {

using ::testing::HasSubstr;

// The kernel has a program on a function once only.
class UpdateTracingTest : public TracingFixture {
 protected:
  UpdateTracingTest()
      : TracingFixture(Kind::kFentryMulti, kBpfTraceFentryMulti) {
    options_.updatable = true;
  }

  // Functions of the core kernel by number.
  Resolution Of(const std::vector<size_t>& numbers) {
    ResolutionText text({kind_});
    for (size_t number : numbers) Add(text, number);
    return text.Build();
  }

  std::map<uint64_t, uint32_t> IdsByCookie() {
    std::map<uint64_t, uint32_t> ids;
    for (const FakeTracingSys::Link& link : fake_.OpenLinks()) {
      for (size_t i = 0; i < link.ids.size(); ++i) {
        EXPECT_TRUE(ids.emplace(link.cookies[i], link.ids[i]).second);
      }
    }
    return ids;
  }
};

using Ids = std::map<uint64_t, uint32_t>;

TEST_F(UpdateTracingTest, ALinkThatLosesSomeIsClosedFirst) {
  auto attachment = Attach(Of({1, 2, 3}));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  const auto report = attachment->Update(Of({1, 3, 4}));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->interrupted, 2u);
  EXPECT_EQ(report->doubled, 0u);
  EXPECT_GT(report->gap_ns, 0);
  EXPECT_THAT(report->ToString(),
              HasSubstr("2 functions of the kept ones not"));
  EXPECT_EQ(IdsByCookie(), (Ids{{0, IdOf(1)}, {2, IdOf(3)}, {3, IdOf(4)}}));
}

TEST_F(UpdateTracingTest, AfterAFailureTheClosedLinkIsThereAgain) {
  auto attachment = Attach(Of({1, 2, 3}));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  const Ids before = IdsByCookie();
  const size_t fds = CountOpenFds();
  // The link to function 4, then the one to what is left of the first.
  for (uint32_t call : {0, 1}) {
    fake_.FailCall(fake_.calls() + call, EPERM);
    const absl::Status status = attachment->Update(Of({1, 3, 4})).status();
    EXPECT_EQ(ErrnoOf(status), EPERM) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is as before"));
    EXPECT_EQ(IdsByCookie(), before);
    EXPECT_EQ(CountOpenFds(), fds);
    EXPECT_TRUE(attachment->IsAttached(1));
    EXPECT_EQ(attachment->links().size(), 1u);
  }
  // Where that fails too, it says so.
  fake_.FailCall(fake_.calls() + 1, EPERM);
  fake_.FailCall(fake_.calls() + 2, EMFILE);
  const absl::Status status = attachment->Update(Of({1, 3, 4})).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("are no longer attached"));
  EXPECT_EQ(IdsByCookie(), Ids());
  EXPECT_FALSE(attachment->IsAttached(0));
}

}  // namespace
}  // namespace ksweep
