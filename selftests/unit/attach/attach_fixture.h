// Resolutions without Resolve(), and a fake kernel to attach them to.

#ifndef KSWEEP_SELFTESTS_UNIT_ATTACH_ATTACH_FIXTURE_H_
#define KSWEEP_SELFTESTS_UNIT_ATTACH_ATTACH_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ksweep/attach.h"
#include "lib/attach/attacher.h"
#include "lib/resolve/resolution_builder.h"
#include "selftests/testing/fake_bpf.h"

namespace ksweep {

inline constexpr uint64_t kText = 0xffffffff81000000;

inline uint64_t AddrOf(size_t i) { return kText + 64 * i; }
inline std::string NameOf(size_t i) { return absl::StrFormat("func_%d", i); }

// What Resolve() would have found, target by target.
class ResolutionText {
 public:
  explicit ResolutionText(KindSet kinds = {Kind::kKprobeMulti},
                          std::vector<Request> requests = {})
      : kinds_(kinds), builder_(std::move(requests), kinds) {}

  // The target number `i`, on address and name of that number.
  Target& Add(size_t i) {
    Target target;
    target.addr = AddrOf(i);
    target.name = builder_.text().Copy(NameOf(i));
    target.kinds = kinds_;
    target.cookie = builder_.targets().size();
    builder_.targets().push_back(target);
    return builder_.targets().back();
  }

  ResolutionBuilder& builder() { return builder_; }
  Resolution Build() { return std::move(builder_).Build(); }

 private:
  KindSet kinds_;
  ResolutionBuilder builder_;
};

inline Resolution MakeResolution(size_t cnt,
                                 KindSet kinds = {Kind::kKprobeMulti}) {
  ResolutionText text(kinds);
  for (size_t i = 0; i < cnt; ++i) text.Add(i);
  return text.Build();
}

// A fake kernel with functions 0 to 99, and a program in it.
class AttachFixture : public ::testing::Test {
 protected:
  AttachFixture() {
    for (size_t i = 0; i < 100; ++i) fake_.AddFunction(AddrOf(i), NameOf(i));
    prog_fd_ = fake_.AddProgram();
    options_.kind = Kind::kKprobeMulti;
    fds_before_ = CountOpenFds();
  }

  absl::StatusOr<Attachment> Attach(const Resolution& resolution) {
    return Attacher(fake_, resolution, options_).Attach(prog_fd_);
  }

  absl::StatusOr<Attachment> Attach(const Resolution& resolution,
                                    absl::Span<const ProgramFd> programs) {
    return Attacher(fake_, resolution, options_).Attach(programs);
  }

  // The error of an attach that has to fail and to leave nothing behind.
  absl::Status AttachError(const Resolution& resolution) {
    absl::Status status = Attach(resolution).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(fake_.OpenLinkCnt(), 0u) << status;
    EXPECT_EQ(CountOpenFds(), fds_before_) << status;
    return status;
  }

  FakeBpfSys fake_;
  AttachOptions options_;
  int prog_fd_ = -1;
  size_t fds_before_ = 0;
};

}  // namespace ksweep

#endif  // KSWEEP_SELFTESTS_UNIT_ATTACH_ATTACH_FIXTURE_H_
