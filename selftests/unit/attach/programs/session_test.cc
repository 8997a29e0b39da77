#include "ksweep/session.h"

#include <bpf/btf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>

#include "ksweep/status.h"

namespace ksweep {
namespace {

using ::testing::HasSubstr;

// A kernel's BTF with functions of any number of void* parameters.
class KernelBtf {
 public:
  KernelBtf() : btf_(btf__new_empty()) {
    int_id_ = btf__add_int(btf_, "int", 4, BTF_INT_SIGNED);
    pointer_id_ = btf__add_ptr(btf_, 0);
  }
  ~KernelBtf() { btf__free(btf_); }
  KernelBtf(const KernelBtf&) = delete;
  KernelBtf& operator=(const KernelBtf&) = delete;

  void AddFunction(const char* name, int params) {
    const int proto = btf__add_func_proto(btf_, int_id_);
    ASSERT_GT(proto, 0);
    for (int i = 0; i < params; ++i) {
      ASSERT_EQ(btf__add_func_param(btf_, "ctx", pointer_id_), 0);
    }
    ASSERT_GT(btf__add_func(btf_, name, BTF_FUNC_GLOBAL, proto), 0);
  }

  // A FUNC that is none: its type is an int.
  void AddBrokenFunction(const char* name) {
    ASSERT_GT(btf__add_func(btf_, name, BTF_FUNC_GLOBAL, int_id_), 0);
  }

  void AddStruct(const char* name) {
    ASSERT_GT(btf__add_struct(btf_, name, 8), 0);
  }

  const btf& get() const { return *btf_; }

 private:
  btf* btf_;
  int int_id_ = 0;
  int pointer_id_ = 0;
};

struct AbiCase {
  const char* what;
  // Parameters of the two calls, -1: there is no such call.
  int is_return;
  int cookie;
  std::optional<SessionAbi> want;  // none: Unimplemented
};

constexpr AbiCase kAbiCases[] = {
    {"before Linux 6.10", -1, -1, SessionAbi::kNone},
    {"up to Linux 6.18", 0, 0, SessionAbi::kVoid},
    {"Linux 7.3", 1, 1, SessionAbi::kCtx},
    {"a form to come", 2, 2, std::nullopt},
    {"mixed", 0, 1, std::nullopt},
    {"mixed the other way", 1, 0, std::nullopt},
    {"one of the two", 1, -1, std::nullopt},
    {"the other of the two", -1, 0, std::nullopt},
};

TEST(SessionAbiOf, Cases) {
  for (const AbiCase& c : kAbiCases) {
    KernelBtf kernel;
    kernel.AddFunction("vfs_read", 4);
    if (c.is_return >= 0) {
      kernel.AddFunction("bpf_session_is_return", c.is_return);
    }
    kernel.AddFunction("bpf_session_is_return_not", 1);
    if (c.cookie >= 0) kernel.AddFunction("bpf_session_cookie", c.cookie);
    absl::StatusOr<SessionAbi> abi = SessionAbiOf(kernel.get());
    EXPECT_EQ(abi.ok(), c.want.has_value()) << c.what;
    if (abi.ok() && c.want.has_value()) {
      EXPECT_EQ(*abi, *c.want) << c.what;
    } else {
      EXPECT_EQ(abi.status().code(), absl::StatusCode::kUnimplemented)
          << c.what;
      EXPECT_THAT(std::string(abi.status().message()),
                  HasSubstr("form that this version does not know"));
    }
  }
}

TEST(SessionAbiOf, OnlyFunctionsCount) {
  KernelBtf kernel;
  kernel.AddStruct("bpf_session_is_return");
  kernel.AddStruct("bpf_session_cookie");
  absl::StatusOr<SessionAbi> abi = SessionAbiOf(kernel.get());
  ASSERT_TRUE(abi.ok()) << abi.status();
  EXPECT_EQ(*abi, SessionAbi::kNone);
}

TEST(SessionAbiOf, FunctionWithoutPrototype) {
  KernelBtf kernel;
  kernel.AddBrokenFunction("bpf_session_is_return");
  EXPECT_EQ(SessionAbiOf(kernel.get()).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(PickSessionObject, TheOneThatFits) {
  const std::string void_form = "void", ctx_form = "ctx";
  absl::StatusOr<absl::Span<const char>> picked =
      PickSessionObject(SessionAbi::kVoid, void_form, ctx_form);
  ASSERT_TRUE(picked.ok()) << picked.status();
  EXPECT_EQ(picked->data(), void_form.data());
  EXPECT_EQ(picked->size(), void_form.size());
  picked = PickSessionObject(SessionAbi::kCtx, void_form, ctx_form);
  ASSERT_TRUE(picked.ok()) << picked.status();
  EXPECT_EQ(picked->data(), ctx_form.data());
  EXPECT_EQ(picked->size(), ctx_form.size());
}

TEST(PickSessionObject, NoSessions) {
  const absl::Status status =
      PickSessionObject(SessionAbi::kNone, {}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Linux 6.10"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("CONFIG_FPROBE"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("kretprobe.multi"));
}

TEST(SessionSkeletonError, KeepsTheErrno) {
  const absl::Status status = SessionSkeletonError(EINVAL);
  EXPECT_EQ(ErrnoOf(status), EINVAL);
  EXPECT_THAT(std::string(status.message()), HasSubstr("BPF object"));
}

}  // namespace
}  // namespace ksweep
