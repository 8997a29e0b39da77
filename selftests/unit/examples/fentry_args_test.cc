#include <bpf/btf.h>
#include <string.h>

#include <memory>
#include <string>

#include "fentry_args/prototype.h"
#include "gtest/gtest.h"

namespace examples {
namespace {

// What the caller left in a register beside a smaller argument.
constexpr uint64_t kGarbage = 0xdeadbeef00000000;

class PrototypeTest : public ::testing::Test {
 protected:
  PrototypeTest() : btf_(btf__new_empty(), btf__free) {
    int_ = btf__add_int(btf_.get(), "int", 4, BTF_INT_SIGNED);
    u32_ = btf__add_int(btf_.get(), "unsigned int", 4, 0);
    const int plain_char = btf__add_int(btf_.get(), "char", 1, 0);
    bool_ = btf__add_int(btf_.get(), "_Bool", 1, BTF_INT_BOOL);
    string_ = btf__add_ptr(btf_.get(), btf__add_const(btf_.get(), plain_char));
    bytes_ = btf__add_ptr(btf_.get(),
                          btf__add_int(btf_.get(), "unsigned char", 1, 0));
    enum_ = btf__add_enum(btf_.get(), "mode", 4);
    btf__add_enum_value(btf_.get(), "MODE_NONE", -1);
    btf__add_enum_value(btf_.get(), "MODE_REL", 1);
    struct_ = btf__add_struct(btf_.get(), "pair", 12);
    typedef_ = btf__add_typedef(btf_.get(), "name_t", string_);
  }

  void AddParam(const char* name, int type) {
    if (proto_ == 0) proto_ = btf__add_func_proto(btf_.get(), int_);
    ASSERT_EQ(btf__add_func_param(btf_.get(), name, type), 0);
  }

  Prototype Get() {
    const int func = btf__add_func(btf_.get(), "f", BTF_FUNC_STATIC, proto_);
    absl::StatusOr<Prototype> prototype =
        PrototypeOf(*btf_, static_cast<uint32_t>(func));
    EXPECT_TRUE(prototype.ok()) << prototype.status();
    return prototype.ok() ? *prototype : Prototype();
  }

  // Of one argument.
  std::string Text(int type, uint64_t value) {
    proto_ = 0;
    AddParam("x", type);
    fentry_args_call call = {};
    call.args[0] = value;
    call.string_bytes[0] = -14;
    return ArgumentsText(ArgumentsOf(Get(), call));
  }

  std::unique_ptr<btf, void (*)(btf*)> btf_;
  int proto_ = 0;
  int int_, u32_, bool_, string_, bytes_, enum_, struct_, typedef_;
};

TEST_F(PrototypeTest, ValuesByType) {
  EXPECT_EQ(Text(int_, kGarbage | 7), "x=7");
  EXPECT_EQ(Text(int_, kGarbage | 0xffffff9c), "x=-100");
  EXPECT_EQ(Text(u32_, kGarbage | 0xffffffff), "x=4294967295");
  EXPECT_EQ(Text(bool_, kGarbage | 0x101), "x=true");
  EXPECT_EQ(Text(bool_, kGarbage | 0x100), "x=false");
  EXPECT_EQ(Text(enum_, kGarbage | 1), "x=MODE_REL");
  EXPECT_EQ(Text(enum_, kGarbage | 0xffffffff), "x=MODE_NONE");
  EXPECT_EQ(Text(enum_, kGarbage | 5), "x=5");
  EXPECT_EQ(Text(bytes_, 0xffff888000001000), "x=0xffff888000001000");
  EXPECT_EQ(Text(bytes_, 0), "x=NULL");
  EXPECT_EQ(Text(string_, 0x7ffe10), "x=0x7ffe10") << "could not be read";
}

TEST_F(PrototypeTest, AStructTakesAsManyArgumentsAsItHasWords) {
  AddParam("pair", struct_);
  AddParam("", int_);
  const Prototype prototype = Get();
  EXPECT_EQ(prototype.Spec().arg_cnt, 3u);
  fentry_args_call call = {};
  call.args[0] = 0x11;
  call.args[1] = kGarbage | 0x22;
  call.args[2] = 3;
  EXPECT_EQ(ArgumentsText(ArgumentsOf(prototype, call)),
            "pair={0x11, 0x22}, arg1=3");
}

TEST_F(PrototypeTest, StringsUpToTheirNumberAndLength) {
  AddParam("bytes", bytes_);
  AddParam("a", string_);
  AddParam("b", typedef_);
  AddParam("c", string_);
  AddParam("d", string_);
  const Prototype prototype = Get();
  const fentry_args_spec spec = prototype.Spec();
  ASSERT_EQ(spec.string_cnt, 3u);
  EXPECT_EQ(spec.string_args[0], 1u);
  EXPECT_EQ(spec.string_args[2], 3u);
  fentry_args_call call = {};
  call.args[4] = 0x44;
  strcpy(call.strings[0], "say \"hi\"");
  call.string_bytes[0] = 9;
  memset(call.strings[1], 'x', FENTRY_ARGS_STRING_BYTES - 1);
  call.string_bytes[1] = FENTRY_ARGS_STRING_BYTES;
  call.string_bytes[2] = 1;
  EXPECT_EQ(ArgumentsText(ArgumentsOf(prototype, call)),
            "bytes=NULL, a=\"say \\\"hi\\\"\", b=\"" + std::string(63, 'x') +
                "…\", c=\"\", d=0x44");
}

TEST_F(PrototypeTest, OnlyFunctionsHaveOne) {
  EXPECT_FALSE(PrototypeOf(*btf_, static_cast<uint32_t>(int_)).ok());
  EXPECT_FALSE(PrototypeOf(*btf_, 10000).ok());
}

}  // namespace
}  // namespace examples
