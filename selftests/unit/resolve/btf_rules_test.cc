#include "lib/resolve/btf_rules.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ksweep {
namespace {

using ::testing::HasSubstr;

constexpr Kind kEntryKinds[] = {Kind::kFentry, Kind::kFentryMulti};
constexpr Kind kReturnKinds[] = {Kind::kFexit, Kind::kFsession,
                                 Kind::kFexitMulti, Kind::kFsessionMulti};

TEST(TraceDeny, SortedAndWithReasons) {
  const absl::Span<const TraceDeny> list = TraceDenyList();
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_FALSE(list[i].reason.empty()) << list[i].name;
    if (i == 0) continue;
    EXPECT_LT(list[i - 1].name, list[i].name);
  }
}

struct NameCase {
  std::string_view name;
  std::optional<Reason> at_entry;
  std::optional<Reason> at_return;
};

constexpr NameCase kNameCases[] = {
    {"___migrate_enable", Reason::kBlacklisted, Reason::kBlacklisted},
    {"migrate_disable", Reason::kBlacklisted, Reason::kBlacklisted},
    {"migrate_enable", Reason::kBlacklisted, Reason::kBlacklisted},
    {"__rcu_read_lock", Reason::kBlacklisted, Reason::kBlacklisted},
    {"__rcu_read_unlock", Reason::kBlacklisted, Reason::kBlacklisted},
    {"rcu_read_unlock_strict", Reason::kBlacklisted, Reason::kBlacklisted},
    {"preempt_count_add", Reason::kBlacklisted, Reason::kBlacklisted},
    {"preempt_count_sub", Reason::kBlacklisted, Reason::kBlacklisted},
    {"do_exit", std::nullopt, Reason::kNoReturn},
    {"do_group_exit", std::nullopt, Reason::kNoReturn},
    {"make_task_dead", std::nullopt, Reason::kNoReturn},
    {"kthread_complete_and_exit", std::nullopt, Reason::kNoReturn},
    {"kthread_exit", std::nullopt, Reason::kNoReturn},
    {"__module_put_and_kthread_exit", std::nullopt, Reason::kNoReturn},
    {"__x64_sys_exit", std::nullopt, Reason::kNoReturn},
    {"__x64_sys_exit_group", std::nullopt, Reason::kNoReturn},
    {"__ia32_sys_exit", std::nullopt, Reason::kNoReturn},
    {"__ia32_sys_exit_group", std::nullopt, Reason::kNoReturn},
    {"vfs_read", std::nullopt, std::nullopt},
    {"do_exit2", std::nullopt, std::nullopt},
    {"", std::nullopt, std::nullopt},
    {"zzz", std::nullopt, std::nullopt},
};

std::optional<Reason> ReasonOf(const std::optional<Refusal>& refusal) {
  if (!refusal.has_value()) return std::nullopt;
  EXPECT_FALSE(refusal->detail.empty());
  return refusal->reason;
}

TEST(RefuseTraceName, Cases) {
  for (const NameCase& c : kNameCases) {
    for (Kind kind : kEntryKinds) {
      EXPECT_EQ(ReasonOf(RefuseTraceName(c.name, kind)), c.at_entry) << c.name;
    }
    for (Kind kind : kReturnKinds) {
      EXPECT_EQ(ReasonOf(RefuseTraceName(c.name, kind)), c.at_return) << c.name;
    }
  }
}

BtfPrototype Fine() {
  BtfPrototype proto;
  proto.arg_cnt = 2;
  proto.arg_words = 2;
  proto.largest_arg = 8;
  proto.ret = {BtfValue::Kind::kScalar, 4};
  return proto;
}

struct PrototypeCase {
  std::string_view name;
  std::function<void(BtfPrototype*)> change;
  std::string_view says;  // empty: fits
};

const PrototypeCase kPrototypeCases[] = {
    {"fine", [](BtfPrototype*) {}, ""},
    {"nothing", [](BtfPrototype* p) { *p = {}; }, ""},
    {"twelve", [](BtfPrototype* p) { p->arg_cnt = p->arg_words = 12; }, ""},
    {"thirteen", [](BtfPrototype* p) { p->arg_cnt = p->arg_words = 13; },
     "13 arguments in 13 words, at most 12"},
    {"large ones count twice",
     [](BtfPrototype* p) {
       p->arg_cnt = 7;
       p->arg_words = 13;
     },
     "7 arguments in 13 words"},
    {"varargs", [](BtfPrototype* p) { p->varargs = true; }, "variable number"},
    {"16 bytes",
     [](BtfPrototype* p) {
       p->struct_arg = true;
       p->largest_arg = 16;
     },
     ""},
    {"17 bytes",
     [](BtfPrototype* p) {
       p->struct_arg = true;
       p->largest_arg = 17;
     },
     "more than 16 bytes"},
    {"void", [](BtfPrototype* p) { p->void_arg = true; }, "without a size"},
    {"float", [](BtfPrototype* p) { p->other_arg = true; },
     "neither a number nor a pointer"},
    {"returns a struct",
     [](BtfPrototype* p) {
       p->ret = {BtfValue::Kind::kStruct, 8};
     },
     "returns a struct"},
    {"returns a union",
     [](BtfPrototype* p) {
       p->ret = {BtfValue::Kind::kUnion, 8};
     },
     "returns a struct or union"},
    {"returns a float",
     [](BtfPrototype* p) {
       p->ret = {BtfValue::Kind::kOther, 0};
     },
     "neither a number nor a pointer"},
    {"returns a pointer",
     [](BtfPrototype* p) {
       p->ret = {BtfValue::Kind::kPointer, 8};
     },
     ""},
};

TEST(RefusePrototype, OfAllKinds) {
  Arena text;
  for (const PrototypeCase& c : kPrototypeCases) {
    BtfPrototype proto = Fine();
    c.change(&proto);
    for (int i = 0; i < kKindCnt; ++i) {
      const Kind kind = static_cast<Kind>(i);
      if (!NeedsBtf(kind)) continue;
      const std::optional<Refusal> refusal =
          RefusePrototype(proto, kind, {}, &text);
      ASSERT_EQ(refusal.has_value(), !c.says.empty()) << c.name;
      if (!refusal.has_value()) continue;
      EXPECT_EQ(refusal->reason, Reason::kUnsupportedPrototype) << c.name;
      EXPECT_THAT(std::string(refusal->detail), HasSubstr(std::string(c.says)))
          << c.name;
    }
  }
}

TEST(RefusePrototype, LargeReturnsMatterAtTheReturn) {
  Arena text;
  BtfPrototype proto = Fine();
  proto.ret = {BtfValue::Kind::kScalar, 16};
  for (Kind kind : kEntryKinds) {
    EXPECT_FALSE(RefusePrototype(proto, kind, {}, &text).has_value());
  }
  for (Kind kind : kReturnKinds) {
    EXPECT_TRUE(RefusePrototype(proto, kind, {}, &text).has_value());
  }
}

TEST(RefusePrototype, UnionsMatterWherePerFunction) {
  Arena text;
  BtfPrototype proto = Fine();
  proto.union_arg = true;
  TraceLimits limits;
  EXPECT_TRUE(RefusePrototype(proto, Kind::kFentry, limits, &text).has_value());
  EXPECT_TRUE(RefusePrototype(proto, Kind::kFexit, limits, &text).has_value());
  EXPECT_FALSE(
      RefusePrototype(proto, Kind::kFentryMulti, limits, &text).has_value());
  limits.union_args = true;
  EXPECT_FALSE(
      RefusePrototype(proto, Kind::kFentry, limits, &text).has_value());
}

TEST(RefusePrototype, BugCase51_TheLimitsAreGiven) {
  Arena text;
  BtfPrototype proto = Fine();
  proto.arg_cnt = proto.arg_words = 7;
  TraceLimits limits;
  EXPECT_FALSE(
      RefusePrototype(proto, Kind::kFentry, limits, &text).has_value());
  limits.max_args = 6;
  EXPECT_TRUE(RefusePrototype(proto, Kind::kFentry, limits, &text).has_value());
  proto = Fine();
  proto.struct_arg = true;
  limits.struct_args = false;
  EXPECT_TRUE(RefusePrototype(proto, Kind::kFentry, limits, &text).has_value());
}

}  // namespace
}  // namespace ksweep
