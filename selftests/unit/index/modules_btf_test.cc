// BTF ids of modules in an index.

#include "lib/index/modules_btf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "ksweep/symbol_index.h"
#include "lib/source/btf.h"
#include "lib/source/kallsyms.h"
#include "selftests/testing/btf_builder.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using testing::BtfBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// --- the table ---

std::string PackedObjects() {
  std::string packed;
  ModulesBtf::AppendIds("a", 100, {{100, 7}, {163, 9}, {900, 1}}, &packed);
  ModulesBtf::AppendError("b", absl::InvalidArgumentError("bad"), &packed);
  ModulesBtf::AppendIds("c", 4000000000, {{4000000001, 3}}, &packed);
  ModulesBtf::AppendIds("d", 5, {}, &packed);
  return packed;
}

TEST(ModulesBtf, EveryObjectComesBack) {
  const std::string packed = PackedObjects();
  const auto made = ModulesBtf::Make(packed);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->objects().size(), 4u);
  const ModulesBtf::Object* const a = made->Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->first_id, 100u);
  EXPECT_EQ(a->ids.Find(0), 7u);
  EXPECT_EQ(a->ids.Find(63), 9u);
  EXPECT_EQ(a->ids.Find(800), 1u);
  EXPECT_EQ(a->ids.Find(1), std::nullopt);
  const ModulesBtf::Object* const b = made->Find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(b->message, "bad");
  EXPECT_EQ(made->Find("c")->ids.Find(1), 3u);
  EXPECT_EQ(made->Find("d")->ids.Find(0), std::nullopt);
  for (const char* absent : {"", "aa", "e", "A"}) {
    EXPECT_EQ(made->Find(absent), nullptr) << absent;
  }
  EXPECT_TRUE(ModulesBtf::Make("")->objects().empty());
}

TEST(ModulesBtf, WhatIsDamagedIsRefused) {
  const std::string good = PackedObjects();
  // Where an object ends, the others may be missing.
  int good_ends = 0;
  for (size_t size = 0; size < good.size(); ++size) {
    const auto made = ModulesBtf::Make(std::string_view(good).substr(0, size));
    good_ends += made.ok();
    EXPECT_TRUE(made.ok() || absl::IsDataLoss(made.status())) << size;
  }
  EXPECT_EQ(good_ends, 4);

  std::string twice, unsorted, unknown_code;
  ModulesBtf::AppendIds("a", 1, {}, &twice);
  ModulesBtf::AppendIds("a", 1, {}, &twice);
  ModulesBtf::AppendIds("b", 1, {}, &unsorted);
  ModulesBtf::AppendIds("a", 1, {}, &unsorted);
  ModulesBtf::AppendError("a", absl::InternalError("x"), &unknown_code);
  unknown_code[2] = 17;
  const std::string endless(11, '\xff');
  for (const std::string& bad : {twice, unsorted, unknown_code, endless}) {
    EXPECT_TRUE(absl::IsDataLoss(ModulesBtf::Make(bad).status())) << bad;
  }
}

// --- in an index ---

constexpr char kKallsyms[] =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000100 T core_only\n"
    "ffffffff81000200 t shared\n"
    "ffffffff81000300 T _end\n"
    "ffffffffc0100000 t a_only\t[a]\n"
    "ffffffffc0100040 t shared\t[a]\n"
    "ffffffffc0100080 t shared\t[a]\n"
    "ffffffffc01000c0 d shared\t[a]\n"
    "ffffffffc0200000 t shared\t[b]\n"
    "ffffffffc0300000 t shared\t[damaged]\n"
    "ffffffffc0400000 t shared\t[without]\n"
    "ffffffffc0500000 t shared\t[bpf]\n";

class ModulesBtfTest : public ::testing::Test {
 protected:
  ModulesBtfTest() {
    BtfBuilder core;
    proto_ = core.Proto(0, {});
    core_only_ = core.Func("core_only", proto_);
    core_shared_ = core.Func("shared", proto_);
    BtfBuilder a = BtfBuilder::SplitOf(core);
    a_only_ = a.Func("a_only", proto_);
    a_shared_ = a.Func("shared", proto_);
    a_absent_ = a.Func("inlined_everywhere", proto_);
    a_of_core_ = a.Func("core_only", proto_);
    BtfBuilder b = BtfBuilder::SplitOf(core);
    b_shared_ = b.Func("shared", proto_);
    kernel_.Write(KernelFile::kKallsyms, kKallsyms)
        .WriteBtf("", core.Build())
        .WriteBtf("a", a.Build())
        .WriteBtf("b", b.Build())
        .WriteBtf("damaged", b.Build().substr(0, 30))
        .WriteBtf("not_loaded", b.Build());
  }

  SymbolIndex Build() {
    const auto index = SymbolIndex::FromKernel(kernel_.files());
    EXPECT_TRUE(index.ok()) << index.status();
    const auto with = index->WithKernelBtf(kernel_.files());
    EXPECT_TRUE(with.ok()) << with.status();
    return *with;
  }

  SymbolIndex SavedAndOpened(const SymbolIndex& index) {
    const std::string path = kernel_.root() + "/index";
    EXPECT_EQ(index.Save(path), absl::OkStatus());
    OpenOptions options;
    options.relocation = Relocation::kAsBuilt;
    options.verify = true;
    const auto opened = SymbolIndex::Open(path, options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *opened;
  }

  static std::vector<uint64_t> AddrsOf(const SymbolIndex& index,
                                       std::string_view module, uint32_t id) {
    const auto found = index.FindBtf(module, id);
    EXPECT_TRUE(found.ok()) << found.status();
    std::vector<uint64_t> addrs;
    if (!found.ok()) return {~uint64_t{0}};
    for (const IndexSymbol& symbol : *found) {
      EXPECT_EQ(symbol.module, module);
      addrs.push_back(symbol.addr);
    }
    return addrs;
  }

  void CheckAnswers(const SymbolIndex& index) {
    const struct {
      const char* module;
      uint32_t id;
      std::vector<uint64_t> addrs;
    } kCases[] = {
        {"", core_only_, {0xffffffff81000100}},
        {"", core_shared_, {0xffffffff81000200}},
        {"", a_only_, {}},
        {"a", a_only_, {0xffffffffc0100000}},
        // All functions of that name in this module, and nothing else.
        {"a", a_shared_, {0xffffffffc0100040, 0xffffffffc0100080}},
        {"a", a_absent_, {}},
        {"a", a_of_core_, {}},
        // Those below are the core's.
        {"a", core_only_, {}},
        {"a", 0, {}},
        {"a", UINT32_MAX, {}},
        // Of the same number as in the other module.
        {"b", b_shared_, {0xffffffffc0200000}},
        {"b", b_shared_ + 1, {}},
    };
    for (const auto& c : kCases) {
      EXPECT_EQ(AddrsOf(index, c.module, c.id), c.addrs)
          << c.module << " " << c.id;
    }
  }

  testing::FakeKernel kernel_;
  uint32_t proto_, core_only_, core_shared_;
  uint32_t a_only_, a_shared_, a_absent_, a_of_core_, b_shared_;
};

TEST_F(ModulesBtfTest, AnIdIsOneOfItsObject) {
  const SymbolIndex index = Build();
  CheckAnswers(index);
  CheckAnswers(SavedAndOpened(index));
  EXPECT_GT(index.Stats().modules_btf_bytes, 0u);
}

TEST_F(ModulesBtfTest, DamageIsTheMatterOfThatModule) {
  for (const SymbolIndex& index : {Build(), SavedAndOpened(Build())}) {
    const absl::Status damaged = index.FindBtf("damaged", b_shared_).status();
    EXPECT_TRUE(absl::IsInvalidArgument(damaged)) << damaged;
    EXPECT_THAT(std::string(damaged.message()), HasSubstr("btf/damaged"));
    for (const char* module :
         {"without", "not_loaded", "bpf", "no", "a/../b"}) {
      const absl::Status none = index.FindBtf(module, b_shared_).status();
      EXPECT_TRUE(absl::IsFailedPrecondition(none)) << none;
      EXPECT_THAT(std::string(none.message()), HasSubstr(module));
    }
    std::vector<std::string> good, bad;
    for (const ModuleBtf& module : index.ModulesWithBtf()) {
      (module.status.ok() ? good : bad).push_back(module.module);
    }
    EXPECT_THAT(good, ElementsAre("a", "b"));
    EXPECT_THAT(bad, ElementsAre("damaged"));
  }
}

TEST_F(ModulesBtfTest, TheyAreReplacedWithTheModules) {
  const SymbolIndex before = Build();
  kernel_.Write(KernelFile::kKallsyms,
                "ffffffff81000000 T _stext\n"
                "ffffffff81000100 T core_only\n"
                "ffffffffc0700000 t shared\t[b]\n"
                "ffffffffc0800000 t shared\t[not_loaded]\n");
  const auto after = before.WithModules(kernel_.files());
  ASSERT_TRUE(after.ok()) << after.status();
  for (const SymbolIndex& index : {*after, SavedAndOpened(*after)}) {
    EXPECT_THAT(AddrsOf(index, "b", b_shared_),
                ElementsAre(0xffffffffc0700000));
    EXPECT_THAT(AddrsOf(index, "not_loaded", b_shared_),
                ElementsAre(0xffffffffc0800000));
    EXPECT_THAT(AddrsOf(index, "", core_shared_),
                ElementsAre(0xffffffff81000200));
    EXPECT_FALSE(index.FindBtf("a", a_only_).ok());
  }
  CheckAnswers(before);
  EXPECT_THAT(before.WithModulesFromText(kKallsyms)->ModulesWithBtf(),
              IsEmpty());
}

TEST_F(ModulesBtfTest, NoneIsReadUnlessAskedFor) {
  const auto index = SymbolIndex::FromKernel(kernel_.files());
  ASSERT_TRUE(index.ok());
  EXPECT_THAT(index->ModulesWithBtf(), IsEmpty());
  EXPECT_THAT(index->WithModules(kernel_.files())->ModulesWithBtf(), IsEmpty());
  EXPECT_EQ(index->Stats().modules_btf_bytes, 0u);
}

TEST_F(ModulesBtfTest, WithoutTheCoresThereAreNone) {
  const auto index = SymbolIndex::FromKernel(kernel_.files());
  KernelFiles files = kernel_.files();
  files.Disable(KernelFile::kBtfDir);
  EXPECT_TRUE(absl::IsNotFound(index->WithKernelBtf(files).status()));
  kernel_.WriteBtf("", "damaged");
  EXPECT_TRUE(
      absl::IsInvalidArgument(index->WithKernelBtf(kernel_.files()).status()));
}

TEST_F(ModulesBtfTest, AnotherBootHasOtherModules) {
  // Enough symbols to tell where the kernel is.
  std::string text = kKallsyms;
  for (int i = 0; i < 2000; ++i) {
    text += absl::StrFormat("%016x t f%d\n", 0xffffffff81100000 + 16 * i, i);
  }
  kernel_.Write(KernelFile::kKallsyms, text);
  kernel_.Write(KernelFile::kBootId, "boot-1\n");
  const std::string path = kernel_.root() + "/index";
  ASSERT_EQ(Build().Save(path), absl::OkStatus());
  OpenOptions options;
  options.kernel = kernel_.files();
  EXPECT_EQ(SymbolIndex::Open(path, options)->ModulesWithBtf().size(), 3u);
  kernel_.Write(KernelFile::kBootId, "boot-2\n");
  const auto opened = SymbolIndex::Open(path, options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(opened->Stats().modules_left_out);
  EXPECT_THAT(opened->ModulesWithBtf(), IsEmpty());
  EXPECT_FALSE(opened->FindBtf("a", a_only_).ok());
  EXPECT_TRUE(opened->has_btf());
}

// --- real ones ---

struct RealModule {
  const char* kernel;
  const char* module;
};

class RealModuleBtf : public ::testing::TestWithParam<RealModule> {};

// Each function of the module's BTF is found, at each of its addresses.
TEST_P(RealModuleBtf, EveryFunction) {
  const std::string module = GetParam().module;
  const std::string root =
      testing::DataFolder() + "/" + GetParam().kernel + "/";
  const std::string btf_dir = root + "sys/kernel/btf/";
  const std::string core = testing::Gunzip(btf_dir + "vmlinux.gz");
  const std::string own = testing::Gunzip(btf_dir + module + ".gz");
  testing::FakeKernel kernel;
  kernel
      .Write(KernelFile::kKallsyms, testing::Gunzip(root + "proc/kallsyms.gz"))
      .WriteBtf("", core)
      .WriteBtf(module, own);
  auto index = SymbolIndex::FromKernel(kernel.files());
  ASSERT_TRUE(index.ok()) << index.status();
  index = index->WithKernelBtf(kernel.files());
  ASSERT_TRUE(index.ok()) << index.status();

  const auto core_btf = Btf::Parse(core);
  const auto module_btf = Btf::Parse(own, core_btf->get());
  ASSERT_TRUE(module_btf.ok()) << module_btf.status();
  size_t with_address = 0;
  for (const BtfFunc& func : (*module_btf)->funcs()) {
    auto wanted = *index->Find(func.name);
    wanted.erase(std::remove_if(wanted.begin(), wanted.end(),
                                [&](const IndexSymbol& s) {
                                  return s.module != module ||
                                         !IsFunctionType(s.type);
                                }),
                 wanted.end());
    const auto found = index->FindBtf(module, func.id);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->size(), wanted.size()) << func.name;
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ((*found)[i].addr, wanted[i].addr) << func.name;
    }
    with_address += !wanted.empty();
  }
  EXPECT_GT(with_address, 40u);
}

INSTANTIATE_TEST_SUITE_P(Kernels, RealModuleBtf,
                         ::testing::Values(RealModule{"linux-6.12.95", "veth"},
                                           RealModule{"linux-6.12.95", "xfs"},
                                           RealModule{"linux-7.3.4", "veth"},
                                           RealModule{"linux-7.3.4", "xfs"}),
                         [](const ::testing::TestParamInfo<RealModule>& info) {
                           std::string name = std::string(info.param.kernel) +
                                              "_" + info.param.module;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '-' || c == '.'; },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace ksweep
