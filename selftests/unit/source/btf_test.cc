#include "lib/source/btf.h"

#include <linux/btf.h>

#include <cstddef>
#include <cstring>
#include <functional>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/source/btf_elf.h"
#include "selftests/testing/bpf_elf.h"
#include "selftests/testing/btf_builder.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using testing::BtfBuilder;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::unique_ptr<Btf> MustParse(const BtfBuilder& builder,
                               const Btf* base = nullptr) {
  absl::StatusOr<std::unique_ptr<Btf>> btf = Btf::Parse(builder.Build(), base);
  if (!btf.ok()) ADD_FAILURE() << btf.status();
  return btf.ok() ? *std::move(btf) : nullptr;
}

TEST(Btf, FunctionsByIdAndName) {
  BtfBuilder builder;
  const uint32_t proto = builder.Proto(builder.Int("int", 4), {});
  const uint32_t f = builder.Func("f", proto);
  const uint32_t empty = builder.Struct("s", 8);
  const uint32_t g = builder.Func("g", proto);
  const std::unique_ptr<Btf> btf = MustParse(builder);
  ASSERT_THAT(btf->funcs(), SizeIs(2));
  EXPECT_EQ(btf->funcs()[0].name, "f");
  EXPECT_EQ(btf->funcs()[0].id, f);
  EXPECT_EQ(btf->funcs()[1].name, "g");
  EXPECT_EQ(btf->FindFunc(g), &btf->funcs()[1]);
  EXPECT_EQ(btf->FindFunc(0), nullptr);
  EXPECT_EQ(btf->FindFunc(empty), nullptr);
  EXPECT_EQ(btf->FindFunc(g + 1), nullptr);
  EXPECT_EQ(btf->first_id(), 1u);
  EXPECT_EQ(btf->end_id(), g + 1);
  EXPECT_EQ(btf->Describe(empty),
            absl::StrFormat("type %d is STRUCT 's'", empty));
  EXPECT_EQ(btf->Describe(proto),
            absl::StrFormat("type %d is FUNC_PROTO", proto));
  EXPECT_EQ(btf->Describe(g + 1), absl::StrFormat("type ids end at %d", g));
}

// Every kind there is, in front of a function: a wrong length would show.
TEST(Btf, EveryKindHasItsLength) {
  BtfBuilder b;
  const uint32_t i = b.Int("int", 4);
  b.Float("double", 8);
  b.Enum("e", 4);
  b.Enum64("e64");
  b.Ptr(i);
  b.Struct("s", 8);
  b.Union("u", 8);
  b.Fwd("fwd");
  b.Typedef("t", i);
  b.Const(i);
  b.TypeTag("user", i);
  b.Array(i, 3);
  b.Raw(0, BTF_KIND_VOLATILE, 0, i);
  b.Raw(0, BTF_KIND_RESTRICT, 0, i);
  const uint32_t var = b.Raw(b.Name("v"), BTF_KIND_VAR, 0, i, {1});
  b.Raw(b.Name(".data"), BTF_KIND_DATASEC, 2, 8, {var, 0, 4, var, 4, 4});
  b.Raw(b.Name("tag"), 17 /* DECL_TAG */, 0, var, {0xffffffff});
  const uint32_t last = b.Func("last", b.Proto(0, {i, i}));
  const std::unique_ptr<Btf> btf = MustParse(b);
  ASSERT_THAT(btf->funcs(), SizeIs(1));
  EXPECT_EQ(btf->funcs()[0].id, last);
  EXPECT_EQ(btf->funcs()[0].name, "last");
}

TEST(Btf, SplitGoesOnWhereItsBaseEnds) {
  BtfBuilder core;
  const uint32_t skb = core.Ptr(core.Struct("sk_buff", 232));
  const uint32_t proto = core.Proto(core.Int("int", 4), {skb});
  core.Func("ip_rcv", proto);
  BtfBuilder module = BtfBuilder::SplitOf(core);
  const uint32_t own = module.Ptr(module.Struct("own", 8));
  const uint32_t a = module.Func("nft_a", proto);
  const uint32_t b = module.Func("nft_b", 0, {own, skb});
  const std::unique_ptr<Btf> base = MustParse(core);
  const std::unique_ptr<Btf> split = MustParse(module, base.get());
  EXPECT_EQ(split->first_id(), base->end_id());
  ASSERT_THAT(split->funcs(), SizeIs(2));
  EXPECT_EQ(split->FindFunc(a)->name, "nft_a");
  EXPECT_EQ(split->FindFunc(b)->name, "nft_b");
  const BtfFunc& func = *split->FindFunc(b);
  EXPECT_EQ(split->PointedStruct(split->ParamType(func, 0)), "own");
  EXPECT_EQ(split->PointedStruct(split->ParamType(func, 1)), "sk_buff");
  EXPECT_EQ(split->Prototype(*split->FindFunc(a)).ret.size, 4u);
  // The base's own functions are the base's.
  EXPECT_EQ(split->FindFunc(base->funcs()[0].id), nullptr);
}

// One function of each shape.
struct ProtoCase {
  std::string name;
  std::function<uint32_t(BtfBuilder*)> make;  // returns the prototype
  BtfPrototype want;
};

BtfPrototype Args(uint32_t cnt, uint32_t words, uint32_t largest) {
  BtfPrototype proto;
  proto.arg_cnt = cnt;
  proto.arg_words = words;
  proto.largest_arg = largest;
  return proto;
}

BtfPrototype With(BtfPrototype proto, bool BtfPrototype::*flag) {
  proto.*flag = true;
  return proto;
}

BtfPrototype Returns(BtfValue::Kind kind, uint32_t size) {
  BtfPrototype proto;
  proto.ret = {kind, size};
  return proto;
}

std::vector<ProtoCase> ProtoCases() {
  using Kind = BtfValue::Kind;
  return {
      {"nothing", [](BtfBuilder* b) { return b->Proto(0, {}); }, Args(0, 0, 0)},
      {"int", [](BtfBuilder* b) { return b->Proto(0, {b->Int("int", 4)}); },
       Args(1, 1, 4)},
      {"bool", [](BtfBuilder* b) { return b->Proto(0, {b->Int("_Bool", 1)}); },
       Args(1, 1, 1)},
      {"int128",
       [](BtfBuilder* b) { return b->Proto(0, {b->Int("__int128", 16)}); },
       Args(1, 2, 16)},
      {"enums",
       [](BtfBuilder* b) {
         return b->Proto(0, {b->Enum("e", 4), b->Enum64("f")});
       },
       Args(2, 2, 8)},
      {"pointer to void",
       [](BtfBuilder* b) { return b->Proto(0, {b->Ptr(0)}); }, Args(1, 1, 8)},
      {"behind typedefs",
       [](BtfBuilder* b) {
         const uint32_t id = b->Typedef("t", b->Const(b->Int("int", 2)));
         return b->Proto(0, {b->Typedef("u", b->TypeTag("tag", id))});
       },
       Args(1, 1, 2)},
      {"varargs",
       [](BtfBuilder* b) {
         return b->Proto(0, {b->Int("int", 4), 0});
       },
       With(Args(1, 1, 4), &BtfPrototype::varargs)},
      {"void in the middle",
       [](BtfBuilder* b) {
         return b->Proto(0, {0, b->Int("int", 4)});
       },
       With(Args(2, 2, 4), &BtfPrototype::void_arg)},
      {"typedef of void",
       [](BtfBuilder* b) { return b->Proto(0, {b->Typedef("v", 0)}); },
       With(Args(1, 1, 0), &BtfPrototype::void_arg)},
      {"struct of 16",
       [](BtfBuilder* b) { return b->Proto(0, {b->Struct("s", 16)}); },
       With(Args(1, 2, 16), &BtfPrototype::struct_arg)},
      {"struct of 17",
       [](BtfBuilder* b) { return b->Proto(0, {b->Struct("s", 17)}); },
       With(Args(1, 3, 17), &BtfPrototype::struct_arg)},
      {"empty struct",
       [](BtfBuilder* b) { return b->Proto(0, {b->Struct("s", 0)}); },
       With(With(Args(1, 1, 0), &BtfPrototype::struct_arg),
            &BtfPrototype::void_arg)},
      {"union", [](BtfBuilder* b) { return b->Proto(0, {b->Union("u", 8)}); },
       With(Args(1, 1, 8), &BtfPrototype::union_arg)},
      {"float",
       [](BtfBuilder* b) { return b->Proto(0, {b->Float("double", 8)}); },
       With(Args(1, 1, 0), &BtfPrototype::other_arg)},
      {"incomplete", [](BtfBuilder* b) { return b->Proto(0, {b->Fwd("fwd")}); },
       With(Args(1, 1, 0), &BtfPrototype::other_arg)},
      {"endless typedef",
       [](BtfBuilder* b) {
         return b->Proto(0, {b->Typedef("t", b->next_id())});
       },
       With(Args(1, 1, 0), &BtfPrototype::other_arg)},
      {"returns int",
       [](BtfBuilder* b) { return b->Proto(b->Int("int", 4), {}); },
       Returns(Kind::kScalar, 4)},
      {"returns a pointer",
       [](BtfBuilder* b) { return b->Proto(b->Ptr(0), {}); },
       Returns(Kind::kPointer, 8)},
      {"returns int128",
       [](BtfBuilder* b) { return b->Proto(b->Int("__int128", 16), {}); },
       Returns(Kind::kScalar, 16)},
      {"returns a struct",
       [](BtfBuilder* b) {
         return b->Proto(b->Typedef("t", b->Struct("s", 8)), {});
       },
       Returns(Kind::kStruct, 8)},
      {"returns a union",
       [](BtfBuilder* b) { return b->Proto(b->Union("u", 4), {}); },
       Returns(Kind::kUnion, 4)},
  };
}

TEST(Btf, Prototypes) {
  for (const ProtoCase& c : ProtoCases()) {
    BtfBuilder builder;
    const uint32_t proto = c.make(&builder);
    builder.Func("f", proto);
    const std::unique_ptr<Btf> btf = MustParse(builder);
    ASSERT_NE(btf, nullptr) << c.name;
    const BtfPrototype got = btf->Prototype(btf->funcs()[0]);
    EXPECT_EQ(got.arg_cnt, c.want.arg_cnt) << c.name;
    EXPECT_EQ(got.arg_words, c.want.arg_words) << c.name;
    EXPECT_EQ(got.largest_arg, c.want.largest_arg) << c.name;
    EXPECT_EQ(got.varargs, c.want.varargs) << c.name;
    EXPECT_EQ(got.void_arg, c.want.void_arg) << c.name;
    EXPECT_EQ(got.struct_arg, c.want.struct_arg) << c.name;
    EXPECT_EQ(got.union_arg, c.want.union_arg) << c.name;
    EXPECT_EQ(got.other_arg, c.want.other_arg) << c.name;
    EXPECT_EQ(got.ret.kind, c.want.ret.kind) << c.name;
    EXPECT_EQ(got.ret.size, c.want.ret.size) << c.name;
  }
}

TEST(Btf, PointedStruct) {
  BtfBuilder b;
  const uint32_t sk = b.Struct("sk_buff", 232);
  const uint32_t aliased = b.Const(b.Typedef("skb_t", sk));
  const uint32_t anonymous = b.Struct("", 8);
  const std::pair<uint32_t, std::string> cases[] = {
      {b.Ptr(sk), "sk_buff"},
      {b.Const(b.Ptr(b.Const(sk))), "sk_buff"},
      {b.Ptr(aliased), "sk_buff"},
      {b.Typedef("ptr_t", b.Ptr(b.TypeTag("rcu", sk))), "sk_buff"},
      {b.Ptr(b.Union("u", 8)), "u"},
      {b.Ptr(b.Fwd("opaque")), "opaque"},
      // The rest is no pointer to a struct.
      {sk, ""},
      {b.Ptr(b.Ptr(sk)), ""},
      {b.Ptr(b.Int("int", 4)), ""},
      {b.Ptr(0), ""},
      {0, ""},
      {b.Ptr(anonymous), ""},
      {b.Array(sk, 2), ""},
  };
  const std::unique_ptr<Btf> btf = MustParse(b);
  for (const auto& [id, want] : cases) {
    EXPECT_EQ(btf->PointedStruct(id), want) << btf->Describe(id);
  }
}

// --- damage ------------------------------------------------------------------

void Put(size_t at, uint32_t value, std::string* bytes) {
  std::memcpy(bytes->data() + at, &value, sizeof(value));
}

struct DamageCase {
  std::string name;
  std::function<std::string()> bytes;
  std::string_view says;
};

std::string Good() {
  BtfBuilder b;
  b.Func("f", b.Int("int", 4), {});
  return b.Build();
}

std::string Damage(const std::function<void(std::string*)>& change) {
  std::string bytes = Good();
  change(&bytes);
  return bytes;
}

std::string Built(const std::function<void(BtfBuilder*)>& fill) {
  BtfBuilder b;
  fill(&b);
  return b.Build();
}

std::vector<DamageCase> DamageCases() {
  return {
      {"empty", [] { return std::string(); }, "less than its header"},
      {"half a header", [] { return Good().substr(0, 23); },
       "less than its header"},
      {"no magic", [] { return Damage([](auto* s) { (*s)[0] = 0; }); },
       "does not start as BTF"},
      {"byte order",
       [] { return Damage([](auto* s) { std::swap((*s)[0], (*s)[1]); }); },
       "another byte order"},
      {"version", [] { return Damage([](auto* s) { (*s)[2] = 9; }); },
       "of version 9"},
      {"short header length",
       [] {
         return Damage(
             [](auto* s) { Put(offsetof(btf_header, hdr_len), 20, s); });
       },
       "types end behind"},
      {"huge header length",
       [] {
         return Damage([](auto* s) {
           Put(offsetof(btf_header, hdr_len), 0xfffffff0, s);
         });
       },
       "types end behind"},
      {"types beyond",
       [] {
         return Damage([](auto* s) {
           Put(offsetof(btf_header, type_len), 0xfffffff0, s);
         });
       },
       "types end behind"},
      {"names beyond",
       [] {
         return Damage(
             [](auto* s) { Put(offsetof(btf_header, str_off), 4096, s); });
       },
       "names end behind"},
      {"cut off", [] { return Good().substr(0, Good().size() - 1); },
       "names end behind"},
      {"no names",
       [] {
         return Damage(
             [](auto* s) { Put(offsetof(btf_header, str_len), 0, s); });
       },
       "have no end"},
      {"names without end",
       [] { return Damage([](auto* s) { s->back() = 'x'; }); }, "have no end"},
      {"type cut off",
       [] {
         return Damage(
             [](auto* s) { Put(offsetof(btf_header, type_len), 20, s); });
       },
       "type 2 is cut off"},
      {"members cut off",
       [] {
         return Built([](auto* b) { b->Raw(0, BTF_KIND_STRUCT, 500, 8); });
       },
       "type 1 is cut off"},
      {"kind 0", [] { return Built([](auto* b) { b->Raw(0, 0, 0, 0); }); },
       "no known kind"},
      {"kind 20", [] { return Built([](auto* b) { b->Raw(0, 20, 0, 0); }); },
       "no known kind"},
      {"unknown bits",
       [] {
         return Built([](auto* b) { b->Raw(0, BTF_KIND_PTR, 1 << 16, 0); });
       },
       "no known kind"},
      {"name beyond",
       [] { return Built([](auto* b) { b->Raw(777, BTF_KIND_FWD, 0, 0); }); },
       "name at 777"},
      {"reference beyond", [] { return Built([](auto* b) { b->Ptr(9); }); },
       "type 1 refers to type 9, and they end at 1"},
      {"parameter beyond",
       [] { return Built([](auto* b) {
              b->Proto(0, {0, 77});
            }); },
       "type 1 refers to type 77"},
      {"return beyond", [] { return Built([](auto* b) { b->Proto(66, {}); }); },
       "type 1 refers to type 66"},
      {"FUNC of no prototype",
       [] { return Built([](auto* b) { b->Func("f", b->Int("int", 4)); }); },
       "FUNC without a prototype"},
      {"FUNC of void", [] { return Built([](auto* b) { b->Func("f", 0); }); },
       "FUNC without a prototype"},
  };
}

TEST(Btf, BugCase72_DamageIsAnErrorThatSaysWhere) {
  for (const DamageCase& c : DamageCases()) {
    const absl::StatusOr<std::unique_ptr<Btf>> btf = Btf::Parse(c.bytes());
    ASSERT_FALSE(btf.ok()) << c.name;
    EXPECT_TRUE(absl::IsInvalidArgument(btf.status())) << c.name;
    EXPECT_THAT(std::string(btf.status().message()),
                HasSubstr(std::string(c.says)))
        << c.name;
  }
}

TEST(Btf, BugCase72_SplitThatDoesNotFitItsBase) {
  BtfBuilder core, other;
  core.Func("f", core.Int("int", 4), {});
  other.Func("a_function_with_a_long_name", 0, {});
  for (int i = 0; i < 50; ++i) other.Struct("padding", 8);
  BtfBuilder module = BtfBuilder::SplitOf(other);
  module.Func("m", other.next_id() - 1);
  const std::unique_ptr<Btf> base = MustParse(core);
  EXPECT_FALSE(Btf::Parse(module.Build(), base.get()).ok());
  EXPECT_TRUE(Btf::Parse(BtfBuilder::SplitOf(core).Build(), base.get()).ok());
}

// No cut, and no changed byte, makes it read outside; that is the sanitizers'.
TEST(Btf, EveryCutAndEveryFlippedByte) {
  BtfBuilder b;
  const uint32_t skb = b.Ptr(b.Struct("sk_buff", 232));
  b.Func("f", b.Int("int", 4), {skb, skb, 0});
  b.Func("g", b.Typedef("t", skb), {});
  const std::string good = b.Build();
  for (size_t len = 0; len < good.size(); ++len) {
    EXPECT_FALSE(Btf::Parse(good.substr(0, len)).ok()) << len;
  }
  size_t readable = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    for (unsigned char flip : {0x01, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      const absl::StatusOr<std::unique_ptr<Btf>> btf = Btf::Parse(bytes);
      if (!btf.ok()) continue;
      ++readable;
      for (const BtfFunc& func : (*btf)->funcs()) {
        (*btf)->Prototype(func);
        for (uint32_t i = 0; i < (*btf)->param_cnt(func); ++i) {
          (*btf)->PointedStruct((*btf)->ParamType(func, i));
        }
      }
    }
  }
  EXPECT_GT(readable, 0u);
}

// --- ELF ---------------------------------------------------------------------

TEST(BtfOfElf, TheSection) {
  const std::string elf = testing::BtfInElf(Good());
  EXPECT_TRUE(IsElf(elf));
  EXPECT_FALSE(IsElf(Good()));
  const absl::StatusOr<std::string> btf = BtfOfElf(elf);
  ASSERT_TRUE(btf.ok()) << btf.status();
  EXPECT_EQ(*btf, Good());
}

TEST(BtfOfElf, NoneInIt) {
  EXPECT_TRUE(absl::IsNotFound(BtfOfElf(BuildElf({{".text", "x"}})).status()));
}

TEST(BtfOfElf, WithABaseOfItsOwn) {
  const std::string elf = BuildElf({{".BTF", Good()}, {".BTF.base", Good()}});
  EXPECT_TRUE(absl::IsFailedPrecondition(BtfOfElf(elf).status()));
}

TEST(BtfOfElf, CutOff) {
  const std::string elf = testing::BtfInElf(Good());
  for (size_t len = 4; len < elf.size(); ++len) {
    EXPECT_FALSE(BtfOfElf(elf.substr(0, len)).ok()) << len;
  }
}

// --- real kernels ------------------------------------------------------------

struct RealCase {
  std::string_view kernel;
  std::string_view module;  // empty: the core kernel
  size_t func_cnt;
};

// Counted with a script that shares no code with this.
constexpr RealCase kRealCases[] = {
    {"linux-7.3.4", "", 53265},     {"linux-7.3.4", "xfs", 6495},
    {"linux-7.3.4", "veth", 50},    {"linux-6.12.95", "", 47212},
    {"linux-6.12.95", "xfs", 3913}, {"linux-6.12.95", "veth", 50},
};

std::string RealBtf(const RealCase& c, std::string_view module) {
  return testing::Gunzip(
      absl::StrFormat("%s/%s/sys/kernel/btf/%s.gz", testing::DataFolder(),
                      std::string(c.kernel), std::string(module)));
}

TEST(Btf, RealKernels) {
  for (const RealCase& c : kRealCases) {
    absl::StatusOr<std::unique_ptr<Btf>> core =
        Btf::Parse(RealBtf(c, "vmlinux"));
    ASSERT_TRUE(core.ok()) << core.status();
    if (c.module.empty()) {
      EXPECT_THAT((*core)->funcs(), SizeIs(c.func_cnt)) << c.kernel;
      continue;
    }
    absl::StatusOr<std::unique_ptr<Btf>> module =
        Btf::Parse(RealBtf(c, c.module), core->get());
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_THAT((*module)->funcs(), SizeIs(c.func_cnt)) << c.kernel;
  }
}

}  // namespace
}  // namespace ksweep
