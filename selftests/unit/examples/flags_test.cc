#include "common/flags.h"

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "common/requests.h"
#include "common/tool.h"
#include "gtest/gtest.h"

ABSL_FLAG(bool, test_off, false, "off unless set");
ABSL_FLAG(bool, test_on, true, "on unless set");
ABSL_FLAG(int, test_number, 7, "a number");
ABSL_FLAG(std::string, test_text, "", "a text");
ABSL_FLAG(std::string, output, "", "what -o stands for");
// Begins with "no" and is no negation.
ABSL_FLAG(bool, notable, false, "a name that begins with no");

namespace examples {
namespace {

using Args = std::vector<std::string>;

// Resets all flags afterwards.
class FlagsTest : public testing::Test {
 protected:
  absl::FlagSaver saver_;
};

TEST_F(FlagsTest, RequestsAndFlagsInAnyOrder) {
  const auto line = ParseFlags(
      Args{"vfs_*", "--test_off", "!vfs_read", "--test_number=3", "x"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->requests, (Args{"vfs_*", "!vfs_read", "x"}));
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_off));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_number), 3);
}

struct NumberCase {
  Args args;
  int want;
};

TEST_F(FlagsTest, Values) {
  const NumberCase kCases[] = {
      {{}, 7},
      {{"--test_number=1"}, 1},
      {{"--test_number", "2"}, 2},
      {{"-test_number=3"}, 3},
      {{"-test_number", "-4"}, -4},
      {{"--test-number=5"}, 5},
      {{"--test_number=1", "--test_number=6"}, 6},
  };
  for (const NumberCase& c : kCases) {
    absl::FlagSaver saver;
    const auto line = ParseFlags(c.args);
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_TRUE(line->requests.empty());
    EXPECT_EQ(absl::GetFlag(FLAGS_test_number), c.want);
  }
}

struct BoolCase {
  std::string arg;
  bool off, on, notable;
};

TEST_F(FlagsTest, Bools) {
  const BoolCase kCases[] = {
      {"--test_off", true, true, false},
      {"-test_off", true, true, false},
      {"--test_off=true", true, true, false},
      {"--test_off=false", false, true, false},
      {"--notest_on", false, false, false},
      {"-notest-on", false, false, false},
      {"--test_on=false", false, false, false},
      {"--notable", false, true, true},
      {"--nonotable", false, true, false},
  };
  for (const BoolCase& c : kCases) {
    absl::FlagSaver saver;
    // A bool does not take the next word.
    const auto line = ParseFlags(Args{c.arg, "false"});
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_EQ(line->requests, Args{"false"}) << c.arg;
    EXPECT_EQ(absl::GetFlag(FLAGS_test_off), c.off) << c.arg;
    EXPECT_EQ(absl::GetFlag(FLAGS_test_on), c.on) << c.arg;
    EXPECT_EQ(absl::GetFlag(FLAGS_notable), c.notable) << c.arg;
  }
}

TEST_F(FlagsTest, TextValuesAreTakenAsTheyAre) {
  ASSERT_TRUE(ParseFlags(Args{"--test_text=a=b c"}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_text), "a=b c");
  ASSERT_TRUE(ParseFlags(Args{"--test_text", "-"}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_text), "-");
  ASSERT_TRUE(ParseFlags(Args{"--test_text="}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_text), "");
}

TEST_F(FlagsTest, AfterTwoDashesOnlyRequests) {
  const auto line = ParseFlags(Args{"a", "--", "--test_off", "--", "-x"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->requests, (Args{"a", "--test_off", "--", "-x"}));
  EXPECT_FALSE(absl::GetFlag(FLAGS_test_off));
}

TEST_F(FlagsTest, OneDashIsARequest) {
  const auto line = ParseFlags(Args{"a", "-", "b"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->requests, (Args{"a", "-", "b"}));
}

TEST_F(FlagsTest, HelpVersionAndShortNames) {
  EXPECT_TRUE(ParseFlags(Args{"--help"})->help);
  EXPECT_TRUE(ParseFlags(Args{"x", "-h"})->help);
  EXPECT_TRUE(ParseFlags(Args{"--version"})->version);
  EXPECT_FALSE(ParseFlags(Args{"--", "--help"})->help);
  ASSERT_TRUE(ParseFlags(Args{"-v"}).ok());
  EXPECT_TRUE(absl::GetFlag(FLAGS_verbose));
  ASSERT_TRUE(ParseFlags(Args{"-p", "17", "-i=0.5"}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_pid), 17u);
  EXPECT_EQ(absl::GetFlag(FLAGS_interval), 0.5);
  ASSERT_TRUE(ParseFlags(Args{"-o", "file"}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_output), "file");
}

struct RefusedCase {
  Args args;
  std::string message;  // a part of it
};

TEST_F(FlagsTest, RefusedNamesFlagAndRemedy) {
  const RefusedCase kCases[] = {
      {{"--nope"}, "--nope: there is no such flag; --help lists them"},
      {{"-nope=1"}, "-nope=1: there is no such flag"},
      {{"--=1"}, "--=1: there is no such flag"},
      {{"---"}, "---: there is no such flag"},
      {{"--test_number=x"}, "--test_number=x: this value does not fit"},
      {{"--test_number="}, "--test_number=: this value does not fit"},
      {{"--test_off=maybe"}, "--test_off=maybe: this value does not fit"},
      {{"--test_text"}, "write --test_text=VALUE"},
      {{"--test_text", "--test_off"}, "write --test_text=VALUE"},
      // Only a bool has a negation.
      {{"--notest_number"}, "--notest_number: there is no such flag"},
      {{"--notest_on=true"}, "--notest_on=true: there is no such flag"},
      {{"--help=1"}, "--help=1: there is no such flag"},
  };
  for (const RefusedCase& c : kCases) {
    absl::FlagSaver saver;
    const auto line = ParseFlags(c.args);
    ASSERT_FALSE(line.ok()) << c.args[0];
    EXPECT_TRUE(absl::IsInvalidArgument(line.status())) << line.status();
    EXPECT_NE(std::string(line.status().message()).find(c.message),
              std::string::npos)
        << line.status();
  }
}

TEST_F(FlagsTest, HelpListsThisProgramsFlagsWithDefaults) {
  const std::string help = HelpText("usage text");
  EXPECT_EQ(help.rfind("usage text\n", 0), 0u);
  EXPECT_NE(help.find("--test_number\n      a number (default: 7)\n"),
            std::string::npos)
      << help;
  EXPECT_NE(help.find("--[no]test_on\n      on unless set (default: true)\n"),
            std::string::npos)
      << help;
  EXPECT_EQ(help.find("flagfile"), std::string::npos) << help;
}

}  // namespace
}  // namespace examples
