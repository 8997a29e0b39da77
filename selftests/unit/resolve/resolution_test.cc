#include "selftests/unit/resolve/resolve_fixture.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MustResolve;
using testing::TargetNames;
using testing::UnmatchedOf;

constexpr char kText[] =
    "ffffffff81000000 t f\nffffffff81000010 t g\nffffffff81000100 t h\n";

TEST(FindByIp, WhatProbesReport) {
  const Resolution r = MustResolve({kText}, {"*"});
  struct Case {
    uint64_t ip;
    std::string_view want;
  };
  const Case cases[] = {
      {0xffffffff81000000, "f"},
      {0xffffffff81000001, "f"},
      {0xffffffff81000004, "f"},
      {0xffffffff8100000f, "f"},
      {0xffffffff81000010, "g"},
      {0xffffffff81000014, "g"},
      {0xffffffff81000020, ""},
      {0xffffffff80ffffff, ""},
      {0xffffffff81000100, "h"},
      {0xffffffff81000110, ""},
      {0, ""},
      {UINT64_MAX, ""},
  };
  for (const Case& c : cases) {
    absl::StatusOr<const Target*> target = r.FindByIp(c.ip);
    EXPECT_EQ(target.ok() ? (*target)->name : "", c.want) << std::hex << c.ip;
    if (!target.ok()) {
      EXPECT_EQ(target.status().code(), absl::StatusCode::kNotFound);
    }
  }
}

TEST(Resolution, CopiesKeepTheirText) {
  Resolution copy;
  {
    const Resolution r = MustResolve({kText}, {"f", "g"});
    copy = r;
  }
  EXPECT_THAT(TargetNames(copy), ElementsAre("f", "g"));
}

TEST(Cookies, NoneGivenTheyAreSlots) {
  const Resolution r = MustResolve({kText}, {"h", "f"});
  EXPECT_FALSE(r.has_cookies());
  ASSERT_EQ(r.targets().size(), 2u);
  EXPECT_EQ(r.targets()[0].cookie, 0u);
  EXPECT_EQ(r.targets()[1].cookie, 1u);
}

TEST(Cookies, SomeGivenTheOthersAreZero) {
  std::vector<Request> requests = testing::ParseAll({"f", "g", "h", "*"});
  requests[1].set_cookie(77);
  requests[2].set_cookie(0);
  absl::StatusOr<Resolution> r = testing::ResolveLists({kText}, requests, {});
  ASSERT_TRUE(r.ok());
  EXPECT_TRUE(r->has_cookies());
  ASSERT_EQ(r->targets().size(), 3u);
  EXPECT_EQ(r->targets()[0].cookie, 0u);
  EXPECT_EQ(r->targets()[1].cookie, 77u);
  EXPECT_EQ(r->targets()[2].cookie, 0u);
}

TEST(Cookies, TwoOnOneFunctionConflict) {
  std::vector<Request> requests = testing::ParseAll({"f", "[f]*", "g"});
  requests[0].set_cookie(1);
  requests[1].set_cookie(2);
  absl::StatusOr<Resolution> r = testing::ResolveLists({kText}, requests, {});
  EXPECT_EQ(r.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(r.status().message()), HasSubstr("CookieConflict"));
  EXPECT_THAT(std::string(r.status().message()),
              HasSubstr("'f' has cookie 1, '[f]*' has 2"));
  requests[1].set_cookie(1);
  r = testing::ResolveLists({kText}, requests, {});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->targets()[0].cookie, 1u);
}

TEST(Deny, WinsOverEverything) {
  const testing::Lists lists = {
      "ffffffff81000000 t f\nffffffff81000100 T f_alias\n"
      "ffffffff81000100 t g\nffffffffc0000000 t f\t[m]\n"};
  struct Case {
    std::vector<std::string> requests;
    std::vector<std::string> want;
  };
  const Case cases[] = {
      {{"*", "!f"}, {"f_alias"}},
      {{"!f", "*"}, {"f_alias"}},
      {{"f", "!f"}, {}},
      {{"*", "!vmlinux:f"}, {"f_alias", "f"}},
      {{"*", "!m:*"}, {"f", "f_alias"}},
      {{"*", "!f*"}, {}},
      // The code is the same under each name.
      {{"f_alias", "f", "!g"}, {"f", "f"}},
      {{"*", "!0xffffffff81000100"}, {"f", "f"}},
      {{"*", "!nothing"}, {"f", "f_alias", "f"}},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(TargetNames(MustResolve(lists, c.requests)), c.want)
        << c.requests[0] << " " << c.requests[1];
  }
}

TEST(Deny, ADeniedExactNameIsNoFailure) {
  absl::StatusOr<Resolution> r =
      testing::ResolveLists({kText}, testing::ParseAll({"f", "g", "!f"}), {});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(UnmatchedOf(*r), ElementsAre("f Denied [f]"));
  ASSERT_EQ(r->omissions().size(), 1u);
  EXPECT_EQ(r->omissions()[0].detail, "!f");
}

TEST(Missing, ListsAllAndSaysWhatExists) {
  absl::StatusOr<Resolution> r = testing::ResolveLists(
      {"ffffffff81000000 t f\nffffffff81000100 t g.isra.0\n"},
      testing::ParseAll({"f", "g", "nope", "z*", "btf:12", "takes:sk_buff"}),
      {});
  EXPECT_EQ(r.status().code(), absl::StatusCode::kNotFound);
  const std::string message(r.status().message());
  EXPECT_THAT(message, HasSubstr("3 requests are without a target"));
  EXPECT_THAT(message, HasSubstr("'g': NotFound (there are: g.isra.0)"));
  EXPECT_THAT(message, HasSubstr("'nope': NotFound"));
  EXPECT_THAT(message, HasSubstr("'btf:12': NoBtf"));
}

TEST(Missing, ARightNameIsNotToBeCorrected) {
  absl::StatusOr<Resolution> r = testing::ResolveLists(
      {"ffffffff81000000 t f\n", /*addrs=*/""}, testing::ParseAll({"f"}), {});
  const std::string message(r.status().message());
  EXPECT_THAT(message, HasSubstr("'f': NotTraceable"));
  EXPECT_THAT(message, HasSubstr("Leave out what cannot be"));
  EXPECT_THAT(message, Not(HasSubstr("there are")));
  EXPECT_THAT(message, Not(HasSubstr("Correct the name")));
}

struct RefusedCase {
  std::vector<Request> requests;
  std::string_view what;
};

TEST(Resolve, RefusesWhatCannotBeUsed) {
  ResolveOptions options;
  const RefusedCase cases[] = {
      {{}, "nothing is asked for"},
      {testing::ParseAll({"!f"}), "nothing is asked for"},
      {{Request::Exact("")}, "the name is empty"},
      {{Request::Exact("a\tb")}, "tab"},
      {{Request::Syscall("")}, "the name is empty"},
      {{Request::Address(0)}, "address 0"},
      {{Request::Exact("f"), Request::BtfId(1).set_deny()}, "cannot be denied"},
      {{Request::Exact("f", Owner::Module("x["))}, "without ']'"},
      {{Request::Exact("f", Owner::Module(""))}, "empty"},
  };
  for (const RefusedCase& c : cases) {
    absl::StatusOr<Resolution> r =
        testing::ResolveLists({kText}, c.requests, options);
    EXPECT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument) << c.what;
    EXPECT_THAT(std::string(r.status().message()),
                HasSubstr(std::string(c.what)));
  }
  options.kinds = {};
  EXPECT_THAT(std::string(testing::ResolveLists(
                              {kText}, testing::ParseAll({"f"}), options)
                              .status()
                              .message()),
              HasSubstr("no kind"));
}

TEST(Predicate, StandsInForAPattern) {
  const testing::Lists lists = {
      "ffffffff81000000 t abc\nffffffff81000100 T abd\n"
      "ffffffffc0000000 t abe\t[m]\nffffffff81000200 d abf\n"};
  const Request request = Request::Matching("regex ab.", [](const Symbol& s) {
    return s.name.size() == 3 && s.name.substr(0, 2) == "ab";
  });
  EXPECT_EQ(request.ToString(), "regex ab.");
  EXPECT_THAT(TargetNames(*testing::ResolveLists(lists, {request}, {})),
              ElementsAre("abc", "abd", "abe"));
  const Request modules = Request::Matching(
      "in modules", [](const Symbol&) { return true; }, Owner::Module("*"));
  EXPECT_THAT(TargetNames(*testing::ResolveLists(lists, {modules}, {})),
              ElementsAre("abe"));
  Request deny = Request::Matching(
      "global", [](const Symbol& s) { return s.type == 'T'; });
  deny.set_deny();
  EXPECT_THAT(TargetNames(*testing::ResolveLists(lists, {request, deny}, {})),
              ElementsAre("abc", "abe"));
}

TEST(Kinds, TrampolinesNeedBtf) {
  ResolveOptions options;
  options.kinds = {Kind::kFentryMulti};
  EXPECT_THAT(testing::OmissionsOf(MustResolve({kText}, {"f"}, options)),
              ElementsAre("f NoBtf"));
  options.kinds = {Kind::kFentryMulti, Kind::kKprobeMulti};
  const Resolution r = MustResolve({kText}, {"f"}, options);
  ASSERT_EQ(r.targets().size(), 1u);
  EXPECT_EQ(r.targets()[0].kinds, KindSet{Kind::kKprobeMulti});
  ASSERT_EQ(r.targets()[0].misfits.size(), 1u);
  EXPECT_EQ(r.targets()[0].misfits[0].reason, Reason::kNoBtf);
}

TEST(StopEarly, EndsOnceEveryNameWasSeen) {
  std::string text = "ffffffff81000000 t f\nffffffff81000100 d g\n";
  for (int i = 0; i < 20000; ++i) {
    text += absl::StrFormat("%x t filler_%d\n", 0xffffffff81001000 + 16 * i, i);
  }
  text += "ffffffff90000000 t f\n";
  ResolveOptions options;
  const Resolution all = MustResolve({text}, {"f", "g"}, options);
  EXPECT_EQ(all.targets().size(), 2u);
  EXPECT_EQ(all.stats().lines, 20003u);
  options.stop_early = true;
  const Resolution early = MustResolve({text}, {"f", "g"}, options);
  EXPECT_EQ(early.targets().size(), 1u);
  EXPECT_LT(early.stats().lines, 5000u);
  // A name that is not there needs the whole pass.
  EXPECT_EQ(MustResolve({text}, {"f", "nope"}, options).stats().lines, 20003u);
}

TEST(Names, OfReasonsAndKinds) {
  EXPECT_EQ(ReasonName(Reason::kNotFound), "NotFound");
  EXPECT_EQ(ReasonName(Reason::kRefusedByKernel), "RefusedByKernel");
  for (int i = 0; i < kKindCnt; ++i) {
    const Kind kind = static_cast<Kind>(i);
    EXPECT_EQ(ParseKind(KindName(kind)), kind);
  }
  EXPECT_FALSE(ParseKind("kprobe.multiple").has_value());
}

TEST(DefaultDenyList, EveryEntryHasAReason) {
  EXPECT_EQ(DefaultDenyList().size(), 13u);
  for (const DefaultDeny& entry : DefaultDenyList()) {
    EXPECT_FALSE(entry.reason.empty()) << entry.pattern;
  }
}

}  // namespace
}  // namespace ksweep
