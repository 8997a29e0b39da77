// Requests by BTF id and by parameter type, and what BPF trampolines take.

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ksweep/resolve.h"
#include "selftests/testing/btf_builder.h"
#include "selftests/testing/fake_kernel.h"
#include "selftests/unit/resolve/resolve_fixture.h"

namespace ksweep {
namespace {

using testing::BtfBuilder;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeKernel;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OmissionsOf;
using testing::TargetsOf;
using testing::UnmatchedOf;

// A kernel with functions, all of them traceable unless `untraceable` has them,
// and BTF of the core that `btf` fills.
struct World {
  std::string kallsyms;
  BtfBuilder btf;
  BtfBuilder module;  // of "m", unless it is empty
  std::string untraceable;
  bool has_btf = true;
  bool has_module_btf = false;

  void WriteTo(FakeKernel* kernel) const {
    testing::WriteLists({kallsyms, ListWithout(untraceable)}, kernel);
    if (has_btf) kernel->WriteBtf("", btf.Build());
    if (has_module_btf) kernel->WriteBtf("m", module.Build());
  }
  // The filter list but for the lines that contain `left_out`.
  std::string ListWithout(const std::string& left_out) const {
    std::string list;
    std::string all = testing::AllTraceable(kallsyms);
    for (size_t at = 0; at < all.size();) {
      const size_t end = all.find('\n', at) + 1;
      const std::string line = all.substr(at, end - at);
      at = end;
      if (left_out.empty() || line.find(left_out) == std::string::npos) {
        list += line;
      }
    }
    return list;
  }
};

Resolution MustResolve(const World& world,
                       const std::vector<std::string>& requests,
                       ResolveOptions options = {}) {
  FakeKernel kernel;
  world.WriteTo(&kernel);
  options.missing = OnMissing::kReport;
  absl::StatusOr<Resolution> resolution =
      Resolve(testing::ParseAll(requests), kernel.files(), options);
  if (!resolution.ok()) {
    ADD_FAILURE() << resolution.status();
    return Resolution();
  }
  return *std::move(resolution);
}

ResolveOptions Kinds(KindSet kinds) {
  ResolveOptions options;
  options.kinds = kinds;
  return options;
}

// "name#id" or "module:name#id".
std::vector<std::string> IdsOf(const Resolution& resolution) {
  std::vector<std::string> texts;
  for (const Target& t : resolution.targets()) {
    std::string text(t.module);
    if (!text.empty()) text += ":";
    texts.push_back(text + std::string(t.name) + "#" +
                    std::to_string(t.btf_id));
  }
  return texts;
}

std::string Id(uint32_t id) { return "btf:" + std::to_string(id); }

// --- requests by id ----------------------------------------------------------

class BtfIdTest : public ::testing::Test {
 protected:
  BtfIdTest() {
    world_.kallsyms =
        "ffffffff81000000 T one\n"
        "ffffffff81000100 t two\n"
        "ffffffff81000200 t other\n"
        "ffffffff81000300 t two\n"
        "ffffffff81000400 T alias\n"
        "ffffffff81000400 T aliased\n"
        "ffffffff81000500 d data\n"
        "ffffffff81000600 t cut.isra.0\n"
        "ffffffffc0000000 t one\t[m]\n"
        "ffffffffc0000100 t nobtf\t[n]\n";
    BtfBuilder& b = world_.btf;
    proto_ = b.Proto(b.Int("int", 4), {});
    one_ = b.Func("one", proto_);
    two_ = b.Func("two", proto_);
    aliased_ = b.Func("aliased", proto_);
    gone_ = b.Func("gone", proto_);
    data_ = b.Func("data", proto_);
    cut_ = b.Func("cut", proto_);
    world_.module = BtfBuilder::SplitOf(b);
    module_one_ = world_.module.Func("one", proto_);
    world_.has_module_btf = true;
  }

  World world_;
  uint32_t proto_, one_, two_, aliased_, gone_, data_, cut_, module_one_;
};

TEST_F(BtfIdTest, OneAddress) {
  const Resolution r = MustResolve(world_, {Id(one_)});
  EXPECT_THAT(TargetsOf(r), ElementsAre("one@ffffffff81000000"));
  EXPECT_EQ(r.targets()[0].btf_id, one_);
}

TEST_F(BtfIdTest, AnIdMeansAnObjectAndANumber) {
  const std::string in_module = "btf:m:" + std::to_string(module_one_);
  const Resolution r = MustResolve(world_, {in_module, Id(one_)});
  EXPECT_THAT(TargetsOf(r),
              ElementsAre("one@ffffffff81000000", "m:one@ffffffffc0000000"));
  EXPECT_EQ(r.targets()[0].btf_id, one_);
  EXPECT_EQ(r.targets()[1].btf_id, module_one_);
  // The core does not know the module's, and the other way round.
  EXPECT_THAT(UnmatchedOf(MustResolve(world_, {Id(module_one_)})),
              ElementsAre(Id(module_one_) + " NoSuchBtfId []"));
  EXPECT_THAT(
      UnmatchedOf(MustResolve(world_, {"btf:m:" + std::to_string(one_)})),
      ElementsAre("btf:m:" + std::to_string(one_) + " NoSuchBtfId []"));
}

TEST_F(BtfIdTest, SeveralAddressesAreAmbiguous) {
  const Resolution r = MustResolve(world_, {Id(two_)});
  EXPECT_THAT(TargetsOf(r), IsEmpty());
  EXPECT_THAT(UnmatchedOf(r), ElementsAre(Id(two_) + " Ambiguous [two]"));
  const std::string detail(r.unmatched()[0].detail);
  EXPECT_THAT(detail, HasSubstr("0xffffffff81000100"));
  EXPECT_THAT(detail, HasSubstr("0xffffffff81000300"));
  EXPECT_THAT(OmissionsOf(r), ElementsAre("two Ambiguous", "two Ambiguous"));
  // Also if one of them cannot be traced: the id may mean that one.
  world_.untraceable = "81000100 two";
  EXPECT_THAT(UnmatchedOf(MustResolve(world_, {Id(two_)})),
              ElementsAre(Id(two_) + " Ambiguous [two]"));
  // By name each of them can be asked for.
  const Resolution both = MustResolve(world_, {Id(two_), "two"});
  EXPECT_THAT(TargetsOf(both), ElementsAre("two@ffffffff81000300"));
}

TEST_F(BtfIdTest, TheNameOfAnAlias) {
  const Resolution r = MustResolve(world_, {Id(aliased_)});
  EXPECT_THAT(IdsOf(r), ElementsAre("aliased#" + std::to_string(aliased_)));
  EXPECT_THAT(r.targets()[0].aliases, ElementsAre("alias"));
}

struct NoTargetCase {
  std::string request;
  std::string want;
  std::string detail;
};

TEST_F(BtfIdTest, NoTarget) {
  const NoTargetCase cases[] = {
      {Id(gone_), "NotFound []", "'gone'"},
      {Id(data_), "NotAFunction []", ""},
      {Id(cut_), "NotFound [cut.isra.0]", "'cut'"},
      {Id(proto_), "NoSuchBtfId []", "FUNC_PROTO"},
      {"btf:1", "NoSuchBtfId []", "INT 'int'"},
      {"btf:99999", "NoSuchBtfId []", "type ids end at"},
      {"btf:n:99999", "NoModuleBtf []", "n: "},
      {"btf:nosuch:7", "ModuleNotLoaded []", "nosuch"},
  };
  for (const NoTargetCase& c : cases) {
    const Resolution r = MustResolve(world_, {c.request});
    EXPECT_THAT(UnmatchedOf(r), ElementsAre(c.request + " " + c.want));
    EXPECT_THAT(std::string(r.unmatched()[0].detail), HasSubstr(c.detail))
        << c.request;
  }
}

TEST_F(BtfIdTest, WithoutBtf) {
  world_.has_btf = false;
  EXPECT_THAT(
      UnmatchedOf(MustResolve(world_, {Id(one_), "btf:m:9", "takes:s"})),
      ElementsAre(Id(one_) + " NoBtf []", "btf:m:9 NoBtf []",
                  "takes:s NoBtf []"));
}

TEST_F(BtfIdTest, IsExactSoItFailsIfMissing) {
  FakeKernel kernel;
  world_.WriteTo(&kernel);
  const absl::Status status =
      Resolve(testing::ParseAll({Id(gone_)}), kernel.files(), {}).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("inlined"));
}

// --- takes: ------------------------------------------------------------------

class TakesTest : public ::testing::Test {
 protected:
  TakesTest() {
    world_.kallsyms =
        "ffffffff81000000 T rx\n"
        "ffffffff81000100 T tx\n"
        "ffffffff81000200 T plain\n"
        "ffffffff81000300 T rcu_skb\n"
        "ffffffffc0000000 t rx\t[m]\n"
        "ffffffffc0000100 t m_tx\t[m]\n";
    BtfBuilder& b = world_.btf;
    const uint32_t skb = b.Ptr(b.Const(b.Struct("sk_buff", 232)));
    const uint32_t dev = b.Ptr(b.Struct("net_device", 64));
    b.Func("rx", 0, {skb, dev});
    b.Func("tx", 0, {dev, b.Typedef("skb_ptr", skb)});
    b.Func("plain", 0, {b.Int("int", 4)});
    b.Func("rcu_skb", 0, {skb});
    world_.module = BtfBuilder::SplitOf(b);
    world_.module.Func("m_tx", 0, {dev, skb});
    world_.has_module_btf = true;
  }
  World world_;
};

TEST_F(TakesTest, AnywhereAndByPosition) {
  EXPECT_THAT(TargetsOf(MustResolve(world_, {"takes:sk_buff"})),
              ElementsAre("rx@ffffffff81000000", "tx@ffffffff81000100",
                          "m:m_tx@ffffffffc0000100"));
  EXPECT_THAT(TargetsOf(MustResolve(world_, {"takes:sk_buff@1"})),
              ElementsAre("rx@ffffffff81000000"));
  EXPECT_THAT(TargetsOf(MustResolve(world_, {"takes:sk_buff@2"})),
              ElementsAre("tx@ffffffff81000100", "m:m_tx@ffffffffc0000100"));
  EXPECT_THAT(UnmatchedOf(MustResolve(world_, {"takes:sk_buff@3"})),
              ElementsAre("takes:sk_buff@3 NotFound []"));
  EXPECT_THAT(UnmatchedOf(MustResolve(world_, {"takes:nosuch"})),
              ElementsAre("takes:nosuch NotFound []"));
}

TEST_F(TakesTest, IsAPatternForDenies) {
  EXPECT_THAT(OmissionsOf(MustResolve(world_, {"takes:sk_buff", "!*tx"})),
              ElementsAre("tx Denied", "rcu_skb DefaultDenied", "m_tx Denied"));
}

TEST_F(TakesTest, BugCase72_DamagedModuleBtfIsOnlyThatModules) {
  FakeKernel kernel;
  world_.WriteTo(&kernel);
  const std::string good = world_.module.Build();
  kernel.WriteBtf("m", good.substr(0, good.size() - 3));
  const absl::StatusOr<Resolution> r =
      Resolve(testing::ParseAll({"takes:sk_buff"}), kernel.files(), {});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(TargetsOf(*r),
              ElementsAre("rx@ffffffff81000000", "tx@ffffffff81000100"));
  EXPECT_THAT(r->stats().notes, Contains(HasSubstr("BTF of module m")));
}

// --- trampolines -------------------------------------------------------------

TEST(Trampolines, BugCase51_WhatFitsAndWhatNot) {
  World world;
  world.kallsyms =
      "ffffffff81000000 t f7\n"
      "ffffffff81000100 t inl\n"
      "ffffffff81000200 t ok\n";
  world.untraceable = " inl";
  const uint32_t i = world.btf.Int("int", 4);
  world.btf.Func("f7", 0, {i, i, i, i, i, i, i});
  world.btf.Func("inl", 0, {});
  const uint32_t ok = world.btf.Func("ok", 0, {});
  ResolveOptions options = Kinds({Kind::kFentry});
  options.limits.max_args = 6;
  const Resolution r = MustResolve(world, {"*"}, options);
  EXPECT_THAT(IdsOf(r), ElementsAre("ok#" + std::to_string(ok)));
  EXPECT_THAT(OmissionsOf(r),
              ElementsAre("f7 UnsupportedPrototype", "inl NotTraceable"));
  EXPECT_THAT(std::string(r.omissions()[0].detail), HasSubstr("7 arguments"));
}

TEST(Trampolines, BugCase70_SeveralFuncsOfOneName) {
  World world;
  world.kallsyms = "ffffffff81000000 t upd_clock\n";
  const uint32_t i = world.btf.Int("int", 4);
  const uint32_t skb = world.btf.Ptr(world.btf.Struct("sk_buff", 8));
  const uint32_t variadic = world.btf.Func("upd_clock", 0, {i, 0});
  const uint32_t fits = world.btf.Func("upd_clock", 0, {i});
  const uint32_t takes = world.btf.Func("upd_clock", 0, {skb});
  const ResolveOptions fentry = Kinds({Kind::kFentryMulti});
  // The first that can be served, and it is said.
  Resolution r = MustResolve(world, {"upd_clock"}, fentry);
  EXPECT_THAT(IdsOf(r), ElementsAre("upd_clock#" + std::to_string(fits)));
  EXPECT_THAT(r.stats().notes, Contains(HasSubstr("upd_clock")));
  // What was asked for by its parameters, or by its id.
  r = MustResolve(world, {"takes:sk_buff"}, fentry);
  EXPECT_THAT(IdsOf(r), ElementsAre("upd_clock#" + std::to_string(takes)));
  r = MustResolve(world, {Id(takes)}, fentry);
  EXPECT_THAT(IdsOf(r), ElementsAre("upd_clock#" + std::to_string(takes)));
  r = MustResolve(world, {Id(variadic)}, fentry);
  EXPECT_THAT(OmissionsOf(r), ElementsAre("upd_clock UnsupportedPrototype"));
  // One function is one target, whatever its ids.
  r = MustResolve(world, {Id(fits), Id(takes), "upd_clock"}, fentry);
  EXPECT_THAT(IdsOf(r), ElementsAre("upd_clock#" + std::to_string(fits)));
  // With two addresses the kernel decides, so no one can say which it is.
  world.kallsyms += "ffffffff81000100 t upd_clock\n";
  for (const std::string& request : {Id(fits), std::string("upd_clock")}) {
    EXPECT_THAT(OmissionsOf(MustResolve(world, {request}, fentry)),
                ElementsAre("upd_clock Ambiguous", "upd_clock Ambiguous"));
  }
}

TEST(Trampolines, BugCase71_NoModuleBtf) {
  World world;
  world.kallsyms =
      "ffffffff81000000 t vfs_q\n"
      "ffffffffc0000000 t nf_q\t[nf_x]\n";
  world.btf.Func("vfs_q", 0, {});
  const Resolution r = MustResolve(
      world, {"*"}, Kinds({Kind::kKprobeMulti, Kind::kFentryMulti}));
  ASSERT_THAT(TargetsOf(r), ElementsAre("vfs_q@ffffffff81000000",
                                        "nf_x:nf_q@ffffffffc0000000"));
  EXPECT_TRUE(r.targets()[0].kinds.Has(Kind::kFentryMulti));
  EXPECT_EQ(r.targets()[1].kinds, KindSet{Kind::kKprobeMulti});
  ASSERT_EQ(r.targets()[1].misfits.size(), 1u);
  EXPECT_EQ(r.targets()[1].misfits[0].reason, Reason::kNoModuleBtf);
  EXPECT_THAT(std::string(r.targets()[1].misfits[0].detail), HasSubstr("nf_x"));
  EXPECT_THAT(OmissionsOf(MustResolve(world, {"nf_q"}, Kinds({Kind::kFentry}))),
              ElementsAre("nf_q NoModuleBtf"));
}

TEST(Trampolines, BugCase73_AMissingTargetIsFilteredBeforeAnyLoad) {
  World world;
  world.kallsyms = "ffffffff81000000 t vfs_q\n";
  world.btf.Func("vfs_q", 0, {});
  const Resolution r =
      MustResolve(world, {"vfs_q", "nonsense"}, Kinds({Kind::kFentry}));
  EXPECT_THAT(TargetsOf(r), ElementsAre("vfs_q@ffffffff81000000"));
  EXPECT_THAT(UnmatchedOf(r), ElementsAre("nonsense NotFound []"));
}

TEST(Trampolines, TheFirstOfANameIsWhatTheKernelTakes) {
  World world;
  world.kallsyms =
      "ffffffff81000000 t t_start\n"
      "ffffffff81000100 t t_start\n"
      "ffffffff81000200 t single\n"
      "ffffffffc0000000 t single\t[m]\n"
      "ffffffffc0000100 t own\t[m]\n";
  world.untraceable = "81000000 t_start";
  world.btf.Func("t_start", 0, {});
  const uint32_t single = world.btf.Func("single", 0, {});
  world.module = BtfBuilder::SplitOf(world.btf);
  const uint32_t own = world.module.Func("own", 0, {});
  const uint32_t module_single = world.module.Func("single", 0, {});
  world.has_module_btf = true;
  const Resolution r = MustResolve(world, {"*"}, Kinds({Kind::kFentryMulti}));
  EXPECT_THAT(OmissionsOf(r),
              ElementsAre("t_start NotTraceable", "t_start Ambiguous"));
  EXPECT_THAT(std::string(r.omissions()[1].detail),
              HasSubstr("the first (0xffffffff81000000) of 2"));
  // Names are looked up within their owner.
  EXPECT_THAT(IdsOf(r), ElementsAre("single#" + std::to_string(single),
                                    "m:single#" + std::to_string(module_single),
                                    "m:own#" + std::to_string(own)));
}

TEST(Trampolines, AnAliasStandsForItsFunction) {
  World world;
  world.kallsyms =
      "ffffffff81000000 T name\n"
      "ffffffff81000000 t longer_alias\n"
      "ffffffff81000100 T twice\n"
      "ffffffff81000100 t twice_alias\n"
      "ffffffff81000200 T twice\n";
  const uint32_t alias = world.btf.Func("longer_alias", 0, {});
  world.btf.Func("twice", 0, {});
  const uint32_t twice_alias = world.btf.Func("twice_alias", 0, {});
  const Resolution r = MustResolve(world, {"*"}, Kinds({Kind::kFentryMulti}));
  EXPECT_THAT(IdsOf(r), ElementsAre("name#" + std::to_string(alias),
                                    "twice#" + std::to_string(twice_alias)));
  EXPECT_THAT(OmissionsOf(r), ElementsAre("twice Ambiguous"));
}

TEST(Trampolines, OtherRefusals) {
  World world;
  world.kallsyms =
      "ffffffff81000000 T do_exit\n"
      "ffffffff81000100 T migrate_disable\n"
      "ffffffff81000200 t not_in_btf\n"
      "ffffffff81000300 t fine\n"
      "ffffffff81000400 t returns_struct\n"
      "ffffffffc0000000 t do_exit\t[m]\n";
  BtfBuilder& b = world.btf;
  for (const char* name : {"do_exit", "migrate_disable", "fine"}) {
    b.Func(name, 0, {});
  }
  b.Func("returns_struct", b.Struct("s", 8), {});
  world.module = BtfBuilder::SplitOf(b);
  world.module.Func("do_exit", 0, {});
  world.has_module_btf = true;
  ResolveOptions options = Kinds({Kind::kFexitMulti});
  options.default_deny = false;
  Resolution r = MustResolve(world, {"*"}, options);
  EXPECT_THAT(
      OmissionsOf(r),
      ElementsAre("do_exit NoReturn", "migrate_disable Blacklisted",
                  "not_in_btf NoBtf", "returns_struct UnsupportedPrototype"));
  EXPECT_THAT(TargetsOf(r), ElementsAre("fine@ffffffff81000300",
                                        "m:do_exit@ffffffffc0000000"));
  options.kinds = {Kind::kFentryMulti};
  EXPECT_THAT(testing::TargetNames(MustResolve(world, {"*"}, options)),
              ElementsAre("do_exit", "fine", "do_exit"));
  // Each kind for itself.
  options.kinds = {Kind::kFentry, Kind::kFexit};
  r = MustResolve(world, {"do_exit"}, options);
  ASSERT_EQ(r.targets().size(), 2u);
  EXPECT_EQ(r.targets()[0].kinds, KindSet{Kind::kFentry});
  ASSERT_EQ(r.targets()[0].misfits.size(), 1u);
  EXPECT_EQ(r.targets()[0].misfits[0].kind, Kind::kFexit);
}

// Of an address it is not known whether its name is there again.
TEST(Trampolines, ByAddressAndByPredicate) {
  World world;
  world.kallsyms =
      "ffffffff81000000 t once\n"
      "ffffffff81000100 t twice\n"
      "ffffffff81000200 t twice\n";
  const uint32_t once = world.btf.Func("once", 0, {});
  world.btf.Func("twice", 0, {});
  const ResolveOptions fentry = Kinds({Kind::kFentryMulti});
  Resolution r =
      MustResolve(world, {"0xffffffff81000000", "0xffffffff81000100"}, fentry);
  EXPECT_THAT(IdsOf(r), ElementsAre("once#" + std::to_string(once)));
  EXPECT_THAT(OmissionsOf(r), ElementsAre("twice Ambiguous"));
  EXPECT_EQ(r.stats().files[0].opens, 1u);
  EXPECT_EQ(r.stats().files[0].passes, 2u);
  EXPECT_THAT(r.stats().notes, Contains(HasSubstr("read again")));
  // Beside a request by name the first pass has it all.
  r = MustResolve(world, {"0xffffffff81000100", "twice"}, fentry);
  EXPECT_EQ(r.stats().files[0].passes, 1u);

  FakeKernel kernel;
  world.WriteTo(&kernel);
  const Request lower = Request::Matching(
      "lower", [](const Symbol& s) { return s.addr == 0xffffffff81000100; });
  const absl::StatusOr<Resolution> picked =
      Resolve({lower}, kernel.files(), fentry);
  ASSERT_TRUE(picked.ok());
  EXPECT_THAT(OmissionsOf(*picked), ElementsAre("twice Ambiguous"));
}

TEST(Trampolines, StopEarlyCannotTellWhetherANameIsUnique) {
  World world;
  world.kallsyms = "ffffffff81000000 t f\n";
  for (int i = 0; i < 20000; ++i) {
    world.kallsyms +=
        absl::StrFormat("%x t filler_%d\n", 0xffffffff81001000 + 16 * i, i);
  }
  world.kallsyms += "ffffffff90000000 t f\n";
  world.btf.Func("f", 0, {});
  ResolveOptions options = Kinds({Kind::kFentry});
  options.stop_early = true;
  EXPECT_THAT(OmissionsOf(MustResolve(world, {"f"}, options)),
              ElementsAre("f Ambiguous", "f Ambiguous"));
}

// --- what is opened ----------------------------------------------------------

TEST(BtfCost, OneSweepAndOnlyTheBtfThatIsNeeded) {
  World world;
  world.kallsyms =
      "ffffffff81000000 t f\n"
      "ffffffffc0000000 t in_m\t[m]\n";
  const uint32_t f = world.btf.Func("f", 0, {});
  world.module = BtfBuilder::SplitOf(world.btf);
  world.module.Func("in_m", 0, {});
  world.has_module_btf = true;
  FakeKernel kernel;
  world.WriteTo(&kernel);
  const KernelFiles files = kernel.files();
  const std::string core = files.BtfPath(""), module = files.BtfPath("m");

  struct CostCase {
    std::vector<std::string> requests;
    Kind kind;
    int core_opens;
    int module_opens;
  };
  const CostCase cases[] = {
      {{"*"}, Kind::kKprobeMulti, 0, 0},
      {{"f"}, Kind::kFentryMulti, 1, 0},
      {{"*"}, Kind::kFentryMulti, 1, 1},
      {{"m:*"}, Kind::kFexit, 1, 1},  // the core's is its base
      {{Id(f), "m:*"}, Kind::kKprobeMulti, 1, 0},
      {{"takes:s"}, Kind::kKprobeMulti, 1, 1},
      {{"nosuch:*"}, Kind::kFentry, 0, 0},
  };
  for (const CostCase& c : cases) {
    testing::OpenCounter opens;
    for (const std::string& path :
         {core, module, kernel.Path(KernelFile::kKallsyms)}) {
      opens.Watch(path);
    }
    ResolveOptions options = Kinds({c.kind});
    options.missing = OnMissing::kReport;
    const absl::StatusOr<Resolution> r =
        Resolve(testing::ParseAll(c.requests), files, options);
    ASSERT_TRUE(r.ok()) << r.status();
    EXPECT_EQ(opens.Opens(core), c.core_opens) << c.requests[0];
    EXPECT_EQ(opens.Opens(module), c.module_opens) << c.requests[0];
    EXPECT_EQ(opens.Opens(kernel.Path(KernelFile::kKallsyms)), 1);
    EXPECT_EQ(r->stats().files[0].passes, 1u) << c.requests[0];
  }
}

TEST(BtfCost, ThousandsOfIdsAreOneSweep) {
  World world;
  std::vector<std::string> requests;
  for (int i = 0; i < 3000; ++i) {
    const std::string name = absl::StrFormat("f%d", i);
    world.kallsyms +=
        absl::StrFormat("%x t %s\n", 0xffffffff81000000 + 16 * i, name);
    requests.push_back(Id(world.btf.Func(name, 0, {})));
  }
  const Resolution r = MustResolve(world, requests);
  EXPECT_EQ(r.targets().size(), 3000u);
  ASSERT_EQ(r.stats().files.size(), 3u);
  for (const FileStats& file : r.stats().files) {
    EXPECT_EQ(file.opens, 1u) << file.path;
    EXPECT_EQ(file.passes, 1u) << file.path;
  }
  EXPECT_EQ(r.targets()[2999].requests[0], 2999u);
}

}  // namespace
}  // namespace ksweep
