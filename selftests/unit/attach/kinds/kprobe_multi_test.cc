#include "lib/attach/kinds/kprobe_multi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ksweep/status.h"
#include "lib/base/errno_status.h"
#include "selftests/testing/fake_bpf.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kRead = 0xffffffff81234560;
constexpr uint64_t kWrite = 0xffffffff81234680;
constexpr uint64_t kUnknown = 0xffffffff81999990;

// A fake kernel, a program in it, and a call that works.
class KprobeMulti : public ::testing::Test {
 protected:
  KprobeMulti() {
    fake_.AddFunction(kRead, "vfs_read");
    fake_.AddFunction(kWrite, "vfs_write");
    call_.abi = AbiOf(Kind::kKprobeMulti);
    call_.prog_fd = fake_.AddProgram();
    call_.addrs = addrs_;
    call_.cookies = cookies_;
    fds_before_ = CountOpenFds();
  }

  void ByName() {
    call_.addrs = {};
    call_.names = names_;
  }

  absl::StatusOr<Link> Create() { return CreateKprobeMultiLink(fake_, call_); }

  FakeBpfSys fake_;
  std::vector<uint64_t> addrs_ = {kRead, kWrite};
  std::vector<std::string_view> names_ = {"vfs_read", "vfs_write"};
  std::vector<uint64_t> cookies_ = {7, 9};
  KprobeMultiCall call_;
  size_t fds_before_ = 0;
};

TEST_F(KprobeMulti, ByAddress) {
  {
    absl::StatusOr<Link> link = Create();
    ASSERT_TRUE(link.ok()) << link.status();
    ASSERT_EQ(fake_.links().size(), 1u);
    const FakeBpfSys::Link made = fake_.links()[0];
    EXPECT_EQ(made.fd, link->fd());
    EXPECT_EQ(made.prog_fd, call_.prog_fd);
    EXPECT_EQ(made.attach_type, kBpfTraceKprobeMulti);
    EXPECT_EQ(made.flags, 0u);
    EXPECT_THAT(made.addrs, ElementsAre(kRead, kWrite));
    EXPECT_THAT(made.names, IsEmpty());
    EXPECT_THAT(made.cookies, ElementsAre(7, 9));
    EXPECT_EQ(fake_.OpenLinkCnt(), 1u);
  }
  EXPECT_EQ(fake_.OpenLinkCnt(), 0u);
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST_F(KprobeMulti, ReturnsAreAFlag) {
  call_.abi = AbiOf(Kind::kKretprobeMulti);
  ASSERT_TRUE(Create().ok());
  EXPECT_EQ(fake_.links()[0].attach_type, kBpfTraceKprobeMulti);
  EXPECT_EQ(fake_.links()[0].flags, kBpfKprobeMultiReturn);
}

TEST_F(KprobeMulti, NamesAreNulTerminatedCopies) {
  const std::string_view text = "vfs_readvfs_write!";
  names_ = {text.substr(0, 8), text.substr(8, 9)};
  ByName();
  ASSERT_TRUE(Create().ok());
  const FakeBpfSys::Link made = fake_.links()[0];
  EXPECT_THAT(made.names, ElementsAre("vfs_read", "vfs_write"));
  EXPECT_THAT(made.addrs, IsEmpty());
  EXPECT_THAT(made.cookies, ElementsAre(7, 9));
}

// Linux 5.18, the first with kprobe.multi, knows no byte behind the cookies.
TEST_F(KprobeMulti, AttrIsNotLongerThanTheOldestKernels) {
  fake_.options().known_attr_bytes = sizeof(KprobeMultiLinkAttr);
  EXPECT_TRUE(Create().ok());
}

struct WordCase {
  size_t width;
  std::vector<uint64_t> words;
  bool ok;
};

TEST(EncodeWords, BugCase57_ElementWidth) {
  const WordCase kCases[] = {
      {8, {}, true},
      {8, {1, 0x1122334455667788, UINT64_MAX}, true},
      {4, {}, true},
      {4, {1, 0xc0101234, UINT32_MAX}, true},
      {4, {1, uint64_t{UINT32_MAX} + 1}, false},
      {4, {kRead}, false},
      {0, {1}, false},
      {2, {1}, false},
      {16, {1}, false},
  };
  for (const WordCase& c : kCases) {
    const auto bytes = EncodeWords(c.words, c.width);
    ASSERT_EQ(bytes.ok(), c.ok) << c.width;
    if (!c.ok) {
      EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    ASSERT_EQ(bytes->size(), c.words.size() * c.width);
    for (size_t i = 0; i < c.words.size(); ++i) {
      const uint8_t* place = bytes->data() + i * c.width;
      uint32_t narrow = 0;
      uint64_t wide = 0;
      if (c.width == 4) {
        std::memcpy(&narrow, place, 4);
        wide = narrow;
      } else {
        std::memcpy(&wide, place, 8);
      }
      EXPECT_EQ(wide, c.words[i]) << c.width;
    }
  }
}

struct ErrnoCase {
  int err;
  absl::StatusCode code;
  const char* hint;  // cause or remedy in the message
};

constexpr ErrnoCase kErrnoCases[] = {
    {EINVAL, absl::StatusCode::kInvalidArgument, "without a reason"},
    {ESRCH, absl::StatusCode::kNotFound, "resolve again"},
    {ENOENT, absl::StatusCode::kNotFound, "resolve again"},
    {EADDRNOTAVAIL, absl::StatusCode::kFailedPrecondition, "link to 2"},
    {EOPNOTSUPP, absl::StatusCode::kUnimplemented, "CONFIG_FPROBE"},
    {E2BIG, absl::StatusCode::kInvalidArgument, "name is longer"},
    {ENOMEM, absl::StatusCode::kResourceExhausted, "max_per_link"},
    {EPERM, absl::StatusCode::kPermissionDenied, "CAP_PERFMON"},
    {EACCES, absl::StatusCode::kPermissionDenied, "security module"},
    {ENODEV, absl::StatusCode::kFailedPrecondition, "ftrace"},
    {EBADF, absl::StatusCode::kInvalidArgument, "descriptor"},
    {EMFILE, absl::StatusCode::kResourceExhausted, "RLIMIT_NOFILE"},
    {ENFILE, absl::StatusCode::kResourceExhausted, "fs.file-max"},
    {ENOSYS, absl::StatusCode::kUnimplemented, "CONFIG_BPF_SYSCALL"},
    {EFAULT, absl::StatusCode::kInternal, "link to 2"},
    {EINTR, absl::StatusCode::kUnavailable, "link to 2"},
    {kKernelEnotsupp, absl::StatusCode::kUnimplemented, "524"},
    {4095, absl::StatusCode::kUnknown, "link to 2"},
};

TEST_F(KprobeMulti, BugCase52_EachErrnoHasOneMeaningAndIsKept) {
  uint32_t call = 0;
  for (const ErrnoCase& c : kErrnoCases) {
    fake_.FailCall(call++, c.err);
    const absl::StatusOr<Link> link = Create();
    ASSERT_FALSE(link.ok()) << c.err;
    EXPECT_EQ(link.status().code(), c.code) << link.status();
    EXPECT_EQ(ErrnoOf(link.status()), c.err) << link.status();
    EXPECT_THAT(std::string(link.status().message()), HasSubstr(c.hint));
  }
  EXPECT_EQ(fake_.calls(), call);  // nothing is asked twice
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST_F(KprobeMulti, BugCase52_ABadAddressHasTwoDialects) {
  addrs_[1] = kUnknown;
  for (int err : {EINVAL, ENOENT}) {
    fake_.options().bad_addr_errno = err;
    EXPECT_EQ(ErrnoOf(Create().status()), err);
  }
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST_F(KprobeMulti, BugCase52_ABadNameIsEsrch) {
  names_[1] = "vfs_unknown";
  ByName();
  const absl::Status status = Create().status();
  EXPECT_EQ(ErrnoOf(status), ESRCH);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("kprobe.multi link to 2 functions by name"));
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST_F(KprobeMulti, BugCase54_TheSameNameTwiceIsEsrch) {
  names_[1] = names_[0];
  ByName();
  EXPECT_EQ(ErrnoOf(Create().status()), ESRCH);
}

// What the fake refuses is what the kernel refuses, in its order: each case
// breaks one rule more, checked earlier than those broken before.
struct RuleCase {
  const char* rule;
  std::function<void(FakeBpfSys&, KprobeMultiLinkAttr&)> Break;
  int want;
};

TEST_F(KprobeMulti, TheFakeChecksInTheKernelsOrder) {
  const RuleCase kCases[] = {
      {"ftrace", [](auto& f, auto&) { f.options().ftrace_dead = true; },
       ENODEV},
      {"address",
       [](auto&, auto& a) {
         static const uint64_t kAddrs[] = {kRead, kUnknown};
         a.addrs = reinterpret_cast<uintptr_t>(kAddrs);
       },
       ENOENT},
      {"memory", [](auto& f, auto&) { f.options().enomem_cnt = 2; }, ENOMEM},
      {"descriptors", [](auto& f, auto&) { f.options().max_open_links = 0; },
       EMFILE},
      {"count", [](auto&, auto& a) { a.cnt = (1u << 20) + 1; }, E2BIG},
      {"no count", [](auto&, auto& a) { a.cnt = 0; }, EINVAL},
      {"flags", [](auto&, auto& a) { a.flags = 2; }, EINVAL},
      {"attach type",
       [](auto&, auto& a) { a.attach_type = kBpfTraceKprobeSession; }, EINVAL},
      {"fprobe", [](auto& f, auto&) { f.options().has_fprobe = false; },
       EOPNOTSUPP},
      {"program", [](auto&, auto& a) { a.prog_fd = 0; }, EBADF},
      {"attr", [](auto& f, auto&) { f.options().known_attr_bytes = 40; },
       E2BIG},
  };
  KprobeMultiLinkAttr attr;
  attr.prog_fd = static_cast<uint32_t>(call_.prog_fd);
  attr.attach_type = kBpfTraceKprobeMulti;
  attr.cnt = 2;
  attr.addrs = reinterpret_cast<uintptr_t>(addrs_.data());
  attr.cookies = reinterpret_cast<uintptr_t>(cookies_.data());
  for (const RuleCase& c : kCases) {
    c.Break(fake_, attr);
    EXPECT_EQ(fake_.Bpf(kBpfLinkCreate, &attr, sizeof(attr)), -c.want)
        << c.rule;
  }
  EXPECT_EQ(CountOpenFds(), fds_before_);
}

TEST_F(KprobeMulti, TheFakeWantsAddressesOrNames) {
  const char* const kNames[] = {"vfs_read", "vfs_write"};
  KprobeMultiLinkAttr attr;
  attr.prog_fd = static_cast<uint32_t>(call_.prog_fd);
  attr.attach_type = kBpfTraceKprobeMulti;
  attr.cnt = 2;
  EXPECT_EQ(fake_.Bpf(kBpfLinkCreate, &attr, sizeof(attr)), -EINVAL);
  attr.addrs = reinterpret_cast<uintptr_t>(addrs_.data());
  attr.syms = reinterpret_cast<uintptr_t>(kNames);
  EXPECT_EQ(fake_.Bpf(kBpfLinkCreate, &attr, sizeof(attr)), -EINVAL);
}

}  // namespace
}  // namespace ksweep
