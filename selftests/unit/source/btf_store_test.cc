#include "lib/source/btf_store.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ksweep/status.h"
#include "selftests/testing/btf_builder.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using testing::BtfBuilder;
using ::testing::ElementsAre;
using testing::FakeKernel;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A core with `f`, a module `good` with `m`, and `bad` that is damaged.
class BtfStoreTest : public ::testing::Test {
 protected:
  BtfStoreTest() {
    core_.Func("f", core_.Int("int", 4), {});
    BtfBuilder good = BtfBuilder::SplitOf(core_);
    good.Func("m", 0, {});
    good_ = good.Build();
    kernel_.WriteBtf("", core_.Build());
    kernel_.WriteBtf("good", good_);
    kernel_.WriteBtf("bad", good_.substr(0, good_.size() - 3));
  }

  BtfBuilder core_;
  std::string good_;
  FakeKernel kernel_;
};

TEST_F(BtfStoreTest, OpensWhatIsAskedForOnce) {
  testing::OpenCounter opens;
  const KernelFiles files = kernel_.files();
  for (std::string_view module : {"", "good", "bad"}) {
    opens.Watch(files.BtfPath(module));
  }
  BtfStore store(files);
  EXPECT_THAT(store.stats(), IsEmpty());
  const absl::StatusOr<const Btf*> core = store.Get("");
  ASSERT_TRUE(core.ok()) << core.status();
  EXPECT_EQ((*core)->funcs()[0].name, "f");
  EXPECT_EQ(opens.Opens(files.BtfPath("good")), 0);
  const absl::StatusOr<const Btf*> good = store.Get("good");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ((*good)->funcs()[0].name, "m");
  EXPECT_EQ(*store.Get("good"), *good);
  EXPECT_EQ(*store.Get(""), *core);
  EXPECT_EQ(opens.Opens(files.BtfPath("")), 1);
  EXPECT_EQ(opens.Opens(files.BtfPath("good")), 1);
  EXPECT_EQ(opens.Opens(files.BtfPath("bad")), 0);
  ASSERT_THAT(store.stats(), SizeIs(2));
  EXPECT_EQ(store.stats()[0].path, "sys/kernel/btf/vmlinux");
  EXPECT_EQ(store.stats()[1].path, "sys/kernel/btf/good");
  EXPECT_EQ(store.stats()[1].bytes, good_.size());
  EXPECT_EQ(store.stats()[1].opens, 1u);
}

TEST_F(BtfStoreTest, BugCase72_DamageOfOneIsNobodyElses) {
  const KernelFiles files = kernel_.files();
  BtfStore store(files);
  const absl::Status bad = store.Get("bad").status();
  EXPECT_TRUE(absl::IsInvalidArgument(bad)) << bad;
  EXPECT_THAT(std::string(bad.message()), HasSubstr(files.BtfPath("bad")));
  EXPECT_EQ(store.Get("bad").status(), bad);
  EXPECT_TRUE(store.Get("good").ok());
  EXPECT_TRUE(store.Get("").ok());
}

TEST_F(BtfStoreTest, BugCase71_AModuleWithoutBtf) {
  const KernelFiles files = kernel_.files();
  BtfStore store(files);
  const absl::Status missing = store.Get("nf_x").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_EQ(ErrnoOf(missing), ENOENT);
  EXPECT_TRUE(store.Get("").ok());
}

TEST_F(BtfStoreTest, NoCore) {
  FakeKernel kernel;
  kernel.WriteBtf("good", good_);
  const KernelFiles files = kernel.files();
  BtfStore store(files);
  EXPECT_TRUE(absl::IsNotFound(store.Get("").status()));
  EXPECT_TRUE(absl::IsNotFound(store.Get("good").status()));
  // A module's is of no use alone, and not opened.
  EXPECT_THAT(store.stats(), IsEmpty());
}

TEST_F(BtfStoreTest, OutOfElfFiles) {
  kernel_.WriteBtf("", testing::BtfInElf(core_.Build()));
  kernel_.WriteBtf("good", testing::BtfInElf(good_));
  kernel_.WriteBtf("bad", testing::BtfInElf(good_).substr(0, 100));
  const KernelFiles files = kernel_.files();
  BtfStore store(files);
  ASSERT_TRUE(store.Get("good").ok()) << store.Get("good").status();
  EXPECT_EQ((*store.Get("good"))->funcs()[0].name, "m");
  EXPECT_FALSE(store.Get("bad").ok());
}

TEST_F(BtfStoreTest, ModulesAreListed) {
  const KernelFiles files = kernel_.files();
  EXPECT_THAT(*BtfStore(files).ListModules(), ElementsAre("bad", "good"));
  const KernelFiles none("/nonexistent");
  EXPECT_TRUE(absl::IsNotFound(BtfStore(none).ListModules().status()));
}

// A saved text can call a module anything.
TEST_F(BtfStoreTest, NamesStayInTheFolder) {
  kernel_.WritePath("sys/kernel/secret", good_);
  const KernelFiles files = kernel_.files();
  BtfStore store(files);
  for (std::string_view name : {"../secret", "/etc/passwd", "..", "."}) {
    EXPECT_TRUE(absl::IsInvalidArgument(store.Get(name).status())) << name;
  }
}

TEST_F(BtfStoreTest, DisabledAndElsewhere) {
  KernelFiles off = kernel_.files();
  off.Disable(KernelFile::kBtfDir);
  BtfStore none(off);
  EXPECT_TRUE(absl::IsNotFound(none.Get("").status()));
  EXPECT_THAT(*none.ListModules(), IsEmpty());
  KernelFiles moved("/nonexistent");
  moved.Override(KernelFile::kBtfDir, kernel_.Path(KernelFile::kBtfDir));
  BtfStore store(moved);
  EXPECT_TRUE(store.Get("good").ok());
  EXPECT_EQ(store.stats()[0].path, moved.BtfPath(""));
}

}  // namespace
}  // namespace ksweep
