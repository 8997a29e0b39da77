#include "lib/base/errno_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/cord.h"

namespace ksweep {
namespace {

using ::testing::HasSubstr;

struct CodeCase {
  int err;
  absl::StatusCode want;
};

constexpr CodeCase kCodeCases[] = {
    {EINVAL, absl::StatusCode::kInvalidArgument},
    {E2BIG, absl::StatusCode::kInvalidArgument},
    {EILSEQ, absl::StatusCode::kInvalidArgument},
    {ENOENT, absl::StatusCode::kNotFound},
    {ESRCH, absl::StatusCode::kNotFound},
    {ENODEV, absl::StatusCode::kNotFound},
    {EADDRNOTAVAIL, absl::StatusCode::kFailedPrecondition},
    {EPERM, absl::StatusCode::kPermissionDenied},
    {EACCES, absl::StatusCode::kPermissionDenied},
    {EOPNOTSUPP, absl::StatusCode::kUnimplemented},
    {ENOSYS, absl::StatusCode::kUnimplemented},
    {524, absl::StatusCode::kUnimplemented},
    {ENOMEM, absl::StatusCode::kResourceExhausted},
    {ENOSPC, absl::StatusCode::kResourceExhausted},
    {EMFILE, absl::StatusCode::kResourceExhausted},
    {ENFILE, absl::StatusCode::kResourceExhausted},
    {EBUSY, absl::StatusCode::kUnavailable},
    {EAGAIN, absl::StatusCode::kUnavailable},
    {EINTR, absl::StatusCode::kUnavailable},
    {EEXIST, absl::StatusCode::kAlreadyExists},
    {EFAULT, absl::StatusCode::kInternal},
    // Not in the table.
    {EIO, absl::StatusCode::kUnknown},
    {EISDIR, absl::StatusCode::kUnknown},
    {ELOOP, absl::StatusCode::kUnknown},
    {0, absl::StatusCode::kUnknown},
    {-1, absl::StatusCode::kUnknown},
    {99999, absl::StatusCode::kUnknown},
};

TEST(ErrnoStatus, CodeMessageAndErrno) {
  for (const CodeCase& c : kCodeCases) {
    EXPECT_EQ(CodeOfErrno(c.err), c.want) << c.err;
    const absl::Status status = ErrnoStatus(c.err, "cannot do it");
    EXPECT_EQ(status.code(), c.want) << c.err;
    EXPECT_EQ(ErrnoOf(status), c.err);
    EXPECT_EQ(std::string(status.message()),
              "cannot do it: " + ErrnoText(c.err));
  }
}

TEST(ErrnoStatus, AnotherCodeThanTheTables) {
  const absl::Status status =
      ErrnoStatus(EINVAL, absl::StatusCode::kNotFound, "no such function");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(ErrnoOf(status), EINVAL);
  EXPECT_EQ(std::string(status.message()),
            "no such function: Invalid argument");
}

TEST(ErrnoStatus, MessagesAreNoFormats) {
  EXPECT_THAT(std::string(ErrnoStatus(EIO, "100%s of %d").message()),
              HasSubstr("100%s of %d: "));
  EXPECT_THAT(std::string(Annotate(ErrnoStatus(EIO, "x"), "%n").message()),
              HasSubstr("%n: x: "));
}

struct TextCase {
  int err;
  std::string_view want;
};

constexpr TextCase kTextCases[] = {
    {EACCES, "Permission denied"},
    {ENOENT, "No such file or directory"},
    {EADDRNOTAVAIL, "Cannot assign requested address"},
    {0, "Success"},
    {kKernelEnotsupp, "Operation not supported (524)"},
    {525, "Unknown error 525"},
    {-7, "Unknown error -7"},
};

TEST(ErrnoStatus, Texts) {
  for (const TextCase& c : kTextCases) {
    EXPECT_EQ(ErrnoText(c.err), c.want) << c.err;
  }
}

TEST(ErrnoStatus, TextsOfManyThreads) {
  std::vector<std::thread> threads;
  for (int n = 0; n < 8; ++n) {
    threads.emplace_back([n] {
      const std::string want = "Unknown error " + std::to_string(10000 + n);
      for (int i = 0; i < 1000; ++i) EXPECT_EQ(ErrnoText(10000 + n), want);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ErrnoStatus, NoErrnoWhereNoCallFailed) {
  EXPECT_EQ(ErrnoOf(absl::OkStatus()), 0);
  EXPECT_EQ(ErrnoOf(absl::InvalidArgumentError("malformed: 22")), 0);
  absl::Status other = absl::InternalError("x");
  other.SetPayload("type.example/errno", absl::Cord("13"));
  EXPECT_EQ(ErrnoOf(other), 0);
}

TEST(ErrnoStatus, AnnotateKeepsCodeAndErrno) {
  absl::Status status = ErrnoStatus(EPERM, "cannot open kallsyms");
  status.SetPayload("type.example/more", absl::Cord("kept"));
  const absl::Status outer = Annotate(Annotate(status, "inner"), "outer");
  EXPECT_TRUE(absl::IsPermissionDenied(outer));
  EXPECT_EQ(ErrnoOf(outer), EPERM);
  EXPECT_EQ(std::string(outer.message()),
            "outer: inner: cannot open kallsyms: Operation not permitted");
  EXPECT_EQ(outer.GetPayload("type.example/more"), absl::Cord("kept"));
}

TEST(ErrnoStatus, AnnotateLeavesOkAlone) {
  EXPECT_EQ(Annotate(absl::OkStatus(), "text"), absl::OkStatus());
}

TEST(ErrnoStatus, BugCase58_LaterCallsDoNotChangeIt) {
  const absl::Status status = ErrnoStatus(EACCES, "cannot open the list");
  errno = 0;  // as the logger of the report did
  const absl::Status annotated = Annotate(status, "no symbols");
  errno = ENOENT;
  EXPECT_EQ(ErrnoOf(status), EACCES);
  EXPECT_EQ(ErrnoOf(annotated), EACCES);
  EXPECT_EQ(ErrnoOf(absl::Status(annotated)), EACCES);
  EXPECT_THAT(std::string(annotated.message()), HasSubstr("Permission denied"));
}

TEST(ErrnoStatus, BugCase67_TheKernelsOwnNumber) {
  const absl::Status status = ErrnoStatus(524, "cannot attach");
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(ErrnoOf(status), 524);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not supported"));
}

}  // namespace
}  // namespace ksweep
