// What calltrace makes of trees: text, Chrome's JSON, folded stacks, a picture.

#include <regex>
#include <string>
#include <string_view>

#include "absl/strings/str_split.h"
#include "calltrace/chrome_trace.h"
#include "calltrace/flame_graph.h"
#include "calltrace/profile.h"
#include "calltrace/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "selftests/unit/examples/calltrace/synthetic_calls.h"

namespace examples {
namespace {

using testing::CallAt;
using testing::Collected;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Names;
using ::testing::Not;
using testing::RootAt;

enum : uint32_t { kA, kB, kC, kD, kE };

// a(b(c) e), with b of 30 us, c of 10 us, e of 1.5 us.
CallTree SmallTree() {
  Collected got;
  got.builder.Add(CallAt(2, kC, 20'000, 30'000));
  calltrace_call b = CallAt(1, kB, 10'000, 40'000);
  b.ret = static_cast<uint32_t>(-2);
  got.builder.Add(b);
  got.builder.Add(CallAt(1, kE, 50'000, 51'500));
  calltrace_call a = RootAt(kA, 5'000, 2'005'000, 4);
  a.cpu = 3;
  a.ret = 0xffff888003a71000;
  got.builder.AddRoot(a, "cat");
  return got.trees[0];
}

struct ReturnCase {
  uint64_t ret;
  std::string_view want;
};

TEST(ReturnText, Cases) {
  constexpr ReturnCase kCases[] = {
      {0, "0"},
      {3, "3"},
      {99'999, "99999"},
      {100'000, "0x186a0"},
      {static_cast<uint64_t>(-2), "-ENOENT"},
      {0xfffffffe, "-ENOENT"},  // of an int, whose register is half used
      {static_cast<uint64_t>(-4095), "-4095"},
      {static_cast<uint64_t>(-4096), "0xfffffffffffff000"},
      {0xffff888003a71000, "0xffff888003a71000"},
      {static_cast<uint64_t>(-11), "-EAGAIN"},
      {static_cast<uint64_t>(-512), "-ERESTARTSYS"},
  };
  for (const ReturnCase& c : kCases) {
    EXPECT_EQ(ReturnText(c.ret), c.want) << c.ret;
  }
}

TEST(TreeText, IsThatOfFunctionGraph) {
  std::string text;
  AppendTreeText(SmallTree(), Names(), &text);
  EXPECT_EQ(text, R"(
cat-42, at 0.000005 s
 3)               |  a() {
 0)               |    b() {
 0)   10.000 us   |      c(); /* ret=0 */
 0) + 30.000 us   |    } /* b ret=-ENOENT */
 0)   1.500 us    |    e [mod](); /* ret=0 */
 3) # 2000.000 us |  } /* a ret=0xffff888003a71000 */
)");
}

TEST(TreeText, SaysWhatIsLostMissedAndRunning) {
  CallTree tree = SmallTree();
  tree.lost = 1;
  tree.calls[0].end = CallEnd::kRunning;
  tree.calls[2].end = CallEnd::kMissed;
  std::string text;
  AppendTreeText(tree, Names(), &text);
  EXPECT_THAT(text, HasSubstr("cat-42, at 0.000005 s, 1 call of it lost\n"));
  EXPECT_THAT(text, HasSubstr(" 0)   missed      |      c();\n"));
  EXPECT_THAT(text, HasSubstr(" 3)   running     |  } /* a */\n"));
}

TEST(TreeText, IdleThreadsHaveTheIdZero) {
  CallTree tree = SmallTree();
  tree.thread = uint64_t{2} << 32;
  tree.comm = "swapper/1";
  std::string text;
  AppendTreeText(tree, Names(), &text);
  EXPECT_THAT(text, HasSubstr("\nswapper/1-0, at"));
}

TEST(ChromeTrace, IsOneJsonObject) {
  ChromeTrace trace;
  std::string text = trace.Begin();
  text += trace.Add(SmallTree(), Names());
  text += trace.Add(SmallTree(), Names());
  text += trace.End(7);
  const std::string track = R"("pid":40,"tid":42,)";
  const std::string calls =
      R"({"ph":"X",)" + track +
      R"("ts":5.000,"dur":2000.000,"name":"a","args":{"ret":"0xffff888003a71000","cpu":3}},
{"ph":"X",)" +
      track +
      R"("ts":10.000,"dur":30.000,"name":"b","args":{"ret":"-ENOENT","cpu":0}},
{"ph":"X",)" +
      track +
      R"("ts":20.000,"dur":10.000,"name":"c","args":{"ret":"0","cpu":0}},
{"ph":"X",)" +
      track +
      R"("ts":50.000,"dur":1.500,"name":"e [mod]","args":{"ret":"0","cpu":0}})";
  EXPECT_EQ(text, R"({"displayTimeUnit":"ns","traceEvents":[
{"ph":"M",)" + track +
                      R"("name":"thread_name","args":{"name":"cat"}},
)" + calls + ",\n" + calls +
                      R"(
],"otherData":{"lost_calls":"7"}}
)");
}

TEST(ChromeTrace, WithoutATreeIsStillJson) {
  ChromeTrace trace;
  EXPECT_EQ(trace.Begin() + trace.End(0),
            "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n],\"otherData\":"
            "{\"lost_calls\":\"0\"}}\n");
}

TEST(ChromeTrace, TheFirstThreadNamesTheProcess) {
  CallTree tree = SmallTree();
  tree.pid = 42;
  ChromeTrace trace;
  EXPECT_THAT(
      trace.Add(tree, Names()),
      HasSubstr(
          R"({"ph":"M","pid":42,"tid":42,"name":"process_name","args":{"name":"cat"}})"));
}

TEST(ChromeTrace, IdleThreadsHaveATrackEach) {
  CallTree tree = SmallTree();
  tree.pid = 0;
  tree.thread = uint64_t{3} << 32;
  ChromeTrace trace;
  EXPECT_THAT(trace.Add(tree, Names()), HasSubstr(R"("pid":0,"tid":2,)"));
}

TEST(Profile, AddsUpByStack) {
  Profile profile;
  profile.Add(SmallTree(), Names());
  profile.Add(SmallTree(), Names());
  EXPECT_EQ(profile.root().total_ns, 4'000'000u);
  const Profile::Node& a = profile.root().children.at("cat").children.at("a");
  EXPECT_EQ(a.calls, 2u);
  EXPECT_EQ(a.total_ns, 4'000'000u);
  EXPECT_EQ(a.self_ns, 2u * (2'000'000 - 30'000 - 1'500));
  EXPECT_EQ(a.children.at("b").self_ns, 40'000u);
  EXPECT_EQ(a.children.at("b").total_ns, 60'000u);
}

TEST(Profile, FoldedStacks) {
  Profile profile;
  CallTree tree = SmallTree();
  tree.comm = "a;b c\n";
  profile.Add(tree, Names());
  const std::vector<std::string> lines =
      absl::StrSplit(FoldedText(profile), '\n');
  EXPECT_THAT(lines, ElementsAre("a:b c\\x0a;a 1968500", "a:b c\\x0a;a;b 20000",
                                 "a:b c\\x0a;a;b;c 10000",
                                 "a:b c\\x0a;a;e [mod] 1500", ""));
}

// A missed return may reach beyond what is known of its caller.
TEST(Profile, TimeIsNeverNegative) {
  CallTree tree = SmallTree();
  tree.calls[2].end_ns = tree.calls[1].end_ns + 1'000;
  tree.calls[2].start_ns = tree.calls[1].start_ns;
  Profile profile;
  profile.Add(tree, Names());
  const Profile::Node& b =
      profile.root().children.at("cat").children.at("a").children.at("b");
  EXPECT_EQ(b.self_ns, 0u);
}

double Attribute(const std::string& box, std::string_view name) {
  const std::regex pattern(std::string(name) + "=\"([^\"]*)\"");
  std::smatch match;
  return std::regex_search(box, match, pattern) ? std::stod(match[1]) : -1;
}

std::string BoxOf(const std::string& svg, std::string_view name) {
  for (const absl::string_view line : absl::StrSplit(svg, '\n')) {
    std::string text(line);
    if (text.find(" data-name=\"" + std::string(name) + "\"") !=
        std::string::npos) {
      return text;
    }
  }
  return "";
}

TEST(FlameGraph, WidthIsTimeAndCallsLieInTheirCaller) {
  Collected got;
  got.builder.Add(CallAt(2, kC, 100, 200));
  got.builder.Add(CallAt(1, kB, 100, 600));
  got.builder.Add(CallAt(1, kE, 600, 1000));
  got.builder.AddRoot(RootAt(kA, 0, 1000, 4), "cat");
  Profile profile;
  profile.Add(got.trees[0], Names());
  const std::string svg = FlameGraphSvg(profile, "calltrace 'a' <b> & \"c\"");
  EXPECT_THAT(svg, HasSubstr("calltrace 'a' &lt;b&gt; &amp; &quot;c&quot;"));
  const std::string all = BoxOf(svg, "all"), a = BoxOf(svg, "a"),
                    b = BoxOf(svg, "b"), c = BoxOf(svg, "c"),
                    e = BoxOf(svg, "e [mod]");
  EXPECT_EQ(Attribute(all, "data-w"), 1180);
  EXPECT_EQ(Attribute(a, "data-w"), 1180);
  EXPECT_EQ(Attribute(b, "data-w"), 590);
  EXPECT_EQ(Attribute(c, "data-w"), 118);
  EXPECT_EQ(Attribute(e, "data-w"), 472);
  EXPECT_EQ(Attribute(b, "data-x"), 0);
  EXPECT_EQ(Attribute(c, "data-x"), 0);
  EXPECT_EQ(Attribute(e, "data-x"), 590);
  // A caller is below what it calls, and the picture ends below the lowest.
  EXPECT_EQ(Attribute(a, " y"), Attribute(b, " y") + 17);
  EXPECT_EQ(Attribute(b, " y"), Attribute(e, " y"));
  EXPECT_EQ(Attribute(svg, " height"), Attribute(all, " y") + 17 + 10);
  EXPECT_THAT(b, HasSubstr("<title>b: 0.500 us, 50.0 %; 0.400 us of it itself; "
                           "1 call</title>"));
}

TEST(FlameGraph, LabelsFitAndSmallBoxesAreLeftOut) {
  Collected got;
  got.builder.Add(CallAt(1, kB, 0, 1));
  got.builder.Add(CallAt(1, kC, 10, 30'000));
  got.builder.Add(CallAt(1, kD, 50'000, 51'000));
  got.builder.AddRoot(RootAt(kA, 0, 100'000, 4), "cat");
  const FunctionNames names(
      {"a", "b", std::string(200, 'c'), "long_name_of_d"});
  Profile profile;
  profile.Add(got.trees[0], names);
  const std::string svg = FlameGraphSvg(profile, "t");
  EXPECT_EQ(BoxOf(svg, "b"), "");
  EXPECT_THAT(BoxOf(svg, std::string(200, 'c')), HasSubstr("ccc…</text>"));
  // Too narrow for three letters.
  EXPECT_THAT(BoxOf(svg, "long_name_of_d"), HasSubstr("></text>"));
}

TEST(FlameGraph, OfNothing) {
  const std::string svg = FlameGraphSvg(Profile(), "t");
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace examples
