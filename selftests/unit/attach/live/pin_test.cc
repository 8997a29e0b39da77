// Attachments that outlive their process.

#include "lib/attach/live/pin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ksweep/attachment.h"
#include "ksweep/status.h"
#include "lib/base/bpf_sys.h"
#include "selftests/testing/fake_bpf.h"
#include "selftests/unit/attach/attach_fixture.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A folder for pins, which is not there yet.
class PinTest : public AttachFixture {
 protected:
  PinTest() {
    char path[] = "/tmp/ksweep-pin-XXXXXX";
    root_ = mkdtemp(path);
    dir_ = root_ + "/tool";
  }
  ~PinTest() override { std::filesystem::remove_all(root_); }

  absl::StatusOr<Attachment> TakeOver(const Resolution& resolution) {
    absl::StatusOr<std::unique_ptr<AttachmentState>> state =
        TakeOverLinks(fake_, dir_, resolution, options_);
    if (!state.ok()) return state.status();
    return Attachment(*std::move(state));
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string root_;
  std::string dir_;
};

TEST_F(PinTest, OutlivesTheAttachmentAndIsTakenOver) {
  options_.max_per_link = 2;
  {
    auto attachment = Attach(MakeResolution(5));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    ASSERT_TRUE(attachment->Pin(dir_).ok());
    EXPECT_EQ(attachment->pin_dir(), dir_);
    EXPECT_THAT(Files(),
                ElementsAre("00000000-kprobe_multi", "00000001-kprobe_multi",
                            "00000002-kprobe_multi"));
  }
  EXPECT_EQ(fake_.PinCnt(), 3u);

  auto attachment = TakeOver(MakeResolution(5));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(attachment->kind(), Kind::kKprobeMulti);
  EXPECT_EQ(attachment->links().size(), 3u);
  EXPECT_THAT(attachment->targets(), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_TRUE(attachment->IsAttached(4));
  EXPECT_EQ(attachment->Report().attached, 5u);
  EXPECT_TRUE(attachment->ReadBack()->matches());

  ASSERT_TRUE(attachment->Detach().ok());
  EXPECT_EQ(fake_.PinCnt(), 0u);
  EXPECT_FALSE(std::filesystem::exists(dir_));
}

TEST_F(PinTest, UnpinLeavesItAttachedByTheObject) {
  auto attachment = Attach(MakeResolution(2));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  ASSERT_TRUE(attachment->Pin(dir_).ok());
  ASSERT_TRUE(attachment->Unpin().ok());
  EXPECT_EQ(attachment->pin_dir(), "");
  EXPECT_FALSE(std::filesystem::exists(dir_));
  EXPECT_EQ(fake_.OpenLinkCnt(), 1u);
  EXPECT_TRUE(attachment->Unpin().ok()) << "the second time";
  ASSERT_TRUE(attachment->Pin(dir_).ok()) << "again";
}

TEST_F(PinTest, SlotsOfRefusedFunctionsStayFree) {
  options_.on_refused = OnRefused::kSkip;
  fake_.RefuseAddr(AddrOf(1), ENOENT);
  {
    auto attachment = Attach(MakeResolution(4));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    ASSERT_TRUE(attachment->Pin(dir_).ok());
  }
  const auto attachment = TakeOver(MakeResolution(4));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_THAT(attachment->targets(), ElementsAre(0, kNoTarget, 2, 3));
  EXPECT_FALSE(attachment->IsAttached(1));
  EXPECT_TRUE(attachment->ReadBack()->matches());
}

TEST_F(PinTest, EntryAndReturnShareTheirSlots) {
  constexpr KindSet kPair = {Kind::kKprobeMulti, Kind::kKretprobeMulti};
  {
    auto attachment = Attach(
        MakeResolution(3, kPair),
        {{{Kind::kKprobeMulti, prog_fd_}, {Kind::kKretprobeMulti, prog_fd_}}});
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    ASSERT_TRUE(attachment->Pin(dir_).ok());
    EXPECT_THAT(Files(), ElementsAre("00000000-kretprobe_multi",
                                     "00000001-kprobe_multi"));
  }
  const auto attachment = TakeOver(MakeResolution(3, kPair));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_THAT(attachment->targets(), ElementsAre(0, 1, 2));
  EXPECT_TRUE(attachment->ReadBack()->matches());
}

TEST_F(PinTest, CookiesOfRequestsStay) {
  std::vector<Request> requests = {Request::Address(AddrOf(0))};
  requests[0].set_cookie(1000000);
  ResolutionText text({Kind::kKprobeMulti}, requests);
  text.Add(0).cookie = 1000000;
  text.Add(1).cookie = 0;
  text.Add(2).cookie = 0;
  const Resolution resolution = text.Build();
  {
    auto attachment = Attach(resolution);
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    ASSERT_TRUE(attachment->Pin(dir_).ok());
  }
  const auto attachment = TakeOver(resolution);
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_THAT(attachment->targets(), ElementsAre(0, 1, 2));
  EXPECT_TRUE(attachment->ReadBack()->matches());
}

TEST_F(PinTest, FunctionsThatTheResolutionDoesNotHaveShow) {
  {
    auto attachment = Attach(MakeResolution(3));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    ASSERT_TRUE(attachment->Pin(dir_).ok());
  }
  const auto attachment = TakeOver(MakeResolution(2));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_THAT(attachment->targets(), ElementsAre(0, 1, kNoTarget));
  const auto report = attachment->ReadBack();
  ASSERT_EQ(report->unasked.size(), 1u);
  EXPECT_EQ(report->unasked[0].addr, AddrOf(2));
  EXPECT_EQ(report->unasked[0].cookie, 2u);
}

TEST_F(PinTest, ReadyStaysOnWhilePinned) {
  bool ready = false;
  options_.ready = &ready;
  {
    auto attachment = Attach(MakeResolution(1));
    ASSERT_TRUE(attachment->Pin(dir_).ok());
  }
  EXPECT_TRUE(ready) << "it goes on without the object";
  auto attachment = TakeOver(MakeResolution(1));
  ASSERT_TRUE(attachment->Detach().ok());
  EXPECT_FALSE(ready);
}

TEST_F(PinTest, AFailureLeavesNothingPinned) {
  options_.max_per_link = 1;
  auto attachment = Attach(MakeResolution(3));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  for (uint32_t call : {0u, 1u, 2u}) {
    fake_.FailCall(fake_.calls() + call, EPERM);
    const absl::Status status = attachment->Pin(dir_);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(ErrnoOf(status), EPERM);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("mount -t bpf bpf /sys/fs/bpf"));
    EXPECT_EQ(fake_.PinCnt(), 0u);
    EXPECT_FALSE(std::filesystem::exists(dir_));
    EXPECT_EQ(attachment->pin_dir(), "");
  }
  fake_.FailCall(fake_.calls(), EINVAL);
  EXPECT_THAT(std::string(attachment->Pin(dir_).message()),
              HasSubstr("needs Linux 5.15"));
}

TEST_F(PinTest, RefusedFolders) {
  auto attachment = Attach(MakeResolution(1));
  ASSERT_TRUE(attachment.ok()) << attachment.status();

  EXPECT_EQ(attachment->Pin(root_ + "/no/such").code(),
            absl::StatusCode::kNotFound);

  std::filesystem::create_directory(dir_);
  std::ofstream(dir_ + "/other") << "";
  const absl::Status full = attachment->Pin(dir_);
  EXPECT_EQ(full.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(full.message()), HasSubstr("it has 'other'"));

  std::filesystem::remove(dir_ + "/other");
  ASSERT_TRUE(attachment->Pin(dir_).ok()) << "an empty one is fine";
  const absl::Status twice = attachment->Pin(root_ + "/second");
  EXPECT_EQ(twice.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(twice.message()), HasSubstr("Unpin() first"));
  EXPECT_EQ(Attachment().Pin(dir_).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(PinTest, RefusedTakeOvers) {
  EXPECT_EQ(TakeOver(MakeResolution(1)).status().code(),
            absl::StatusCode::kNotFound)
      << "no folder";
  std::filesystem::create_directory(dir_);
  EXPECT_EQ(TakeOver(MakeResolution(1)).status().code(),
            absl::StatusCode::kNotFound)
      << "an empty one";
  std::ofstream(dir_ + "/README") << "";
  const absl::Status foreign = TakeOver(MakeResolution(1)).status();
  EXPECT_EQ(foreign.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(foreign.message()), HasSubstr("has 'README'"));
  std::filesystem::remove_all(dir_);

  {
    auto attachment = Attach(MakeResolution(1));
    ASSERT_TRUE(attachment->Pin(dir_).ok());
  }
  ResolutionText by_name;
  by_name.Add(0).addr = 0;
  by_name.builder().set_by_name(true);
  EXPECT_EQ(TakeOver(by_name.Build()).status().code(),
            absl::StatusCode::kFailedPrecondition);

  fake_.options().hides_addrs = true;
  const absl::Status hidden = TakeOver(MakeResolution(1)).status();
  EXPECT_EQ(hidden.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(hidden.message()), HasSubstr("kptr_restrict"));

  fake_.options().hides_addrs = false;
  fake_.options().tells_cookies = false;
  EXPECT_THAT(std::string(TakeOver(MakeResolution(1)).status().message()),
              HasSubstr("Linux 6.9"));
  EXPECT_EQ(fake_.PinCnt(), 1u) << "a failed take-over changes nothing";
}

TEST_F(PinTest, UpdatableKeepsThePrograms) {
  options_.updatable = true;
  {
    auto attachment = Attach(MakeResolution(2));
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    ASSERT_TRUE(attachment->Pin(dir_).ok());
  }
  const size_t fds_before = CountOpenFds();
  const auto attachment = TakeOver(MakeResolution(2));
  ASSERT_TRUE(attachment.ok()) << attachment.status();
  EXPECT_EQ(CountOpenFds(), fds_before + 2) << "the link and the program";

  fake_.FailCall(fake_.calls() + 3, EPERM);
  const absl::Status status = TakeOver(MakeResolution(2)).status();
  EXPECT_EQ(ErrnoOf(status), EPERM);
  EXPECT_THAT(std::string(status.message()), HasSubstr("CAP_SYS_ADMIN"));
}

}  // namespace
}  // namespace ksweep
