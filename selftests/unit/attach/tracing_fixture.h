// Resolutions with BTF ids, and a fake kernel to attach them to.

#ifndef KSWEEP_SELFTESTS_UNIT_ATTACH_TRACING_FIXTURE_H_
#define KSWEEP_SELFTESTS_UNIT_ATTACH_TRACING_FIXTURE_H_

#include <gtest/gtest.h>
#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "lib/attach/attacher.h"
#include "lib/attach/programs/program_image.h"
#include "selftests/testing/fake_tracing.h"
#include "selftests/unit/attach/attach_fixture.h"

namespace ksweep {

// The BTF id of the function number `i`.
inline uint32_t IdOf(size_t i) { return static_cast<uint32_t>(1000 + i); }

inline ProgramImage MakeImage(uint32_t attach_type) {
  ProgramImage image;
  image.name = "a_program_with_a_long_name";
  image.insns = {{BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0},
                 {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  image.prog_type = kBpfProgTypeTracing;
  image.attach_type = attach_type;
  image.gpl_compatible = true;
  return image;
}

// Functions 0 to 99 in the core kernel and in the modules ant and zoo, with the
// same ids everywhere, and a program of `kind_`.
class TracingFixture : public ::testing::Test {
 protected:
  TracingFixture(Kind kind, uint32_t attach_type) : kind_(kind) {
    ant_ = fake_.AddModule("ant");
    fake_.AddModule("");  // of a BPF program
    zoo_ = fake_.AddModule("zoo");
    for (size_t i = 0; i < 100; ++i) {
      for (uint32_t object : {0u, ant_, zoo_}) fake_.AddFunc(object, IdOf(i));
    }
    program_.kind = kind;
    program_.fd = fake_.AddProgram(attach_type);
    program_.image = std::make_shared<ProgramImage>(MakeImage(attach_type));
    fds_before_ = CountOpenFds();
  }

  // Function number `i` of a module.
  Target& Add(ResolutionText& text, size_t i, std::string_view module = "") {
    Target& target = text.Add(i);
    target.btf_id = IdOf(i);
    target.module = module;
    return target;
  }

  // The first `cnt` of the core kernel.
  Resolution Core(size_t cnt) {
    ResolutionText text({kind_});
    for (size_t i = 0; i < cnt; ++i) Add(text, i);
    return text.Build();
  }

  absl::StatusOr<Attachment> Attach(const Resolution& resolution) {
    return Attacher(fake_, resolution, options_).Attach({&program_, 1});
  }

  // The error of an attach that has to fail and to leave nothing behind.
  absl::Status AttachError(const Resolution& resolution) {
    absl::Status status = Attach(resolution).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(fake_.OpenLinks().size(), 0u) << status;
    EXPECT_EQ(CountOpenFds(), fds_before_) << status;
    return status;
  }

  const Kind kind_;
  FakeTracingSys fake_;
  uint32_t ant_ = 0;
  uint32_t zoo_ = 0;
  ProgramFd program_;
  AttachOptions options_;
  size_t fds_before_ = 0;
};

}  // namespace ksweep

#endif  // KSWEEP_SELFTESTS_UNIT_ATTACH_TRACING_FIXTURE_H_
