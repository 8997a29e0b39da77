#include "lib/source/restrictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/source/list_file.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using ::testing::AllOf;
using testing::FakeKernel;
using ::testing::HasSubstr;
using ::testing::Not;

struct LockdownCase {
  std::string_view text;
  Lockdown want;
};

constexpr LockdownCase kLockdownCases[] = {
    {"[none] integrity confidentiality\n", Lockdown::kNone},
    {"none [integrity] confidentiality\n", Lockdown::kIntegrity},
    {"none integrity [confidentiality]\n", Lockdown::kConfidentiality},
    {"none integrity [confidentiality]", Lockdown::kConfidentiality},
    {"[integrity]", Lockdown::kIntegrity},
    // Nothing that is known.
    {"", Lockdown::kUnknown},
    {"\n", Lockdown::kUnknown},
    {"none integrity confidentiality\n", Lockdown::kUnknown},
    {"none [] integrity\n", Lockdown::kUnknown},
    {"none [paranoia] integrity\n", Lockdown::kUnknown},
    {"none [integrity\n", Lockdown::kUnknown},
    {"none integrity]\n", Lockdown::kUnknown},
    {"none ]integrity[\n", Lockdown::kUnknown},
    {"[", Lockdown::kUnknown},
    {"]", Lockdown::kUnknown},
    {"[Integrity]", Lockdown::kUnknown},
    {"[ integrity ]", Lockdown::kUnknown},
    {"] [integrity]", Lockdown::kIntegrity},
};

TEST(ParseLockdown, BugCase69_Modes) {
  for (const LockdownCase& c : kLockdownCases) {
    EXPECT_EQ(ParseLockdown(c.text), c.want) << c.text;
  }
}

TEST(ExplainMissingList, SaysWhatToDo) {
  const FakeKernel kernel;
  EXPECT_THAT(ExplainMissingList(kernel.files()),
              AllOf(HasSubstr("mount -t tracefs tracefs /sys/kernel/tracing"),
                    HasSubstr("root"), HasSubstr("CONFIG_DYNAMIC_FTRACE"),
                    Not(HasSubstr("lockdown"))));
}

struct HintCase {
  std::string_view lockdown;
  std::string_view want;  // empty: lockdown is not mentioned
};

constexpr HintCase kHintCases[] = {
    {"none [integrity] confidentiality\n", "kernel lockdown is 'integrity'"},
    {"none integrity [confidentiality]\n",
     "kernel lockdown is 'confidentiality', which forbids it"},
    {"[none] integrity confidentiality\n", ""},
    {"", ""},
    {"[paranoia]\n", ""},
};

TEST(ExplainMissingList, BugCase69_LockdownIsAHint) {
  for (const HintCase& c : kHintCases) {
    FakeKernel kernel;
    kernel.Write(KernelFile::kLockdown, c.lockdown);
    const std::string text = ExplainMissingList(kernel.files());
    if (c.want.empty()) {
      EXPECT_THAT(text, Not(HasSubstr("lockdown"))) << c.lockdown;
    } else {
      EXPECT_THAT(text, HasSubstr(c.want));
    }
  }
}

TEST(ExplainMissingList, BugCase69_DisabledLockdownFile) {
  FakeKernel kernel;
  kernel.Write(KernelFile::kLockdown, "none [integrity] confidentiality\n");
  KernelFiles files = kernel.files();
  files.Disable(KernelFile::kLockdown);
  EXPECT_THAT(ExplainMissingList(files), Not(HasSubstr("lockdown")));
}

TEST(ExplainMissingList, BugCase69_LockdownNeverBlocksAnAttempt) {
  FakeKernel kernel;
  kernel.Write(KernelFile::kLockdown, "none integrity [confidentiality]\n");
  kernel.Write(KernelFile::kFilterFunctions, "vfs_q\n");
  EXPECT_TRUE(
      ListFile::Open(kernel.files(), KernelFile::kFilterFunctions).ok());
}

struct KptrCase {
  std::optional<std::string_view> sysctl;  // nothing: no file
  std::vector<std::string_view> want;
  std::string_view unwanted;
};

TEST(ExplainHiddenAddresses, BugCase04_NamesTheSysctlItRead) {
  const KptrCase kCases[] = {
      // At 2 addresses are hidden from everybody: a capability is no help.
      {"2\n", {"kernel.kptr_restrict is 2", "set it to 0 or 1"}, "CAP_SYSLOG"},
      {"2", {"kernel.kptr_restrict is 2", "set it to 0 or 1"}, "CAP_SYSLOG"},
      {"1\n", {"kernel.kptr_restrict is 1", "CAP_SYSLOG"}, "set it"},
      {"0\n", {"kernel.kptr_restrict is 0", "CAP_SYSLOG"}, "set it"},
      {"4\n", {"kernel.kptr_restrict is 4"}, "is 2"},
      {"22\n", {"kernel.kptr_restrict is 22"}, "because"},
      {std::nullopt,
       {"kernel.kptr_restrict cannot be read", "set it to 0", "CAP_SYSLOG"},
       "is 2"},
  };
  for (const KptrCase& c : kCases) {
    FakeKernel kernel;
    if (c.sysctl.has_value())
      kernel.Write(KernelFile::kKptrRestrict, *c.sysctl);
    const std::string text = ExplainHiddenAddresses(kernel.files());
    EXPECT_THAT(text, HasSubstr("kallsyms shows zero addresses"));
    for (std::string_view want : c.want) EXPECT_THAT(text, HasSubstr(want));
    EXPECT_THAT(text, Not(HasSubstr(c.unwanted)));
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace ksweep
