#include "ksweep/features.h"

#include <bpf/btf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ksweep/status.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/errno_status.h"
#include "selftests/testing/fake_bpf.h"
#include "selftests/testing/fake_kernel.h"
#include "selftests/testing/fake_perf.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using testing::FakeKernel;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kBtfPath[] = "sys/kernel/btf/vmlinux";

// What a kernel says about an attach type; 0 is going well.
struct Answer {
  int load_err = 0;
  int link_err = 0;
};

// Loads and links by attach type, and nothing else. Keeps what was asked.
class FakeKinds : public BpfSys {
 public:
  std::map<uint32_t, Answer> answers;
  std::map<uint32_t, int> link_err_by_btf_id;
  // By attach type.
  std::vector<uint32_t> loads, links;

  int Bpf(int cmd, void* attr, size_t size) override {
    const int result = cmd == kBpfProgLoad     ? Load(attr, size)
                       : cmd == kBpfLinkCreate ? CreateLink(attr, size)
                                               : -EBADRQC;
    errno = EDOM;
    return result;
  }

  size_t calls() const { return loads.size() + links.size(); }

 private:
  struct Program {
    uint32_t attach_type = 0;
    uint32_t btf_id = 0;
  };

  int Load(const void* bytes, size_t size) {
    ProgLoadAttr attr;
    EXPECT_EQ(size, sizeof(attr));
    std::memcpy(static_cast<void*>(&attr), bytes, sizeof(attr));
    loads.push_back(attr.expected_attach_type);
    const int err = answers[attr.expected_attach_type].load_err;
    if (err != 0) return -err;
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    programs_[fd] = {attr.expected_attach_type, attr.attach_btf_id};
    return fd;
  }

  int CreateLink(const void* bytes, size_t size) {
    TracingLinkAttr attr;
    std::memcpy(static_cast<void*>(&attr), bytes, sizeof(attr));
    EXPECT_GE(size, sizeof(attr));
    links.push_back(attr.attach_type);
    const Program program = programs_[static_cast<int>(attr.prog_fd)];
    EXPECT_EQ(program.attach_type, attr.attach_type);
    int err = answers[attr.attach_type].link_err;
    if (link_err_by_btf_id.count(program.btf_id) != 0) {
      err = link_err_by_btf_id[program.btf_id];
    }
    return err != 0 ? -err : open("/dev/null", O_RDONLY | O_CLOEXEC);
  }

  std::map<int, Program> programs_;
};

// BTF with a FUNC for each of `funcs`, numbered from 3 on, and an empty struct
// for each of `structs`.
std::string MakeBtf(const std::vector<const char*>& funcs,
                    const std::vector<const char*>& structs) {
  btf* made = btf__new_empty();
  btf__add_int(made, "int", 4, 0);
  btf__add_func_proto(made, 1);
  for (const char* name : funcs) {
    btf__add_func(made, name, BTF_FUNC_GLOBAL, 2);
  }
  for (const char* name : structs) btf__add_struct(made, name, 0);
  uint32_t size = 0;
  const void* bytes = btf__raw_data(made, &size);
  std::string text(static_cast<const char*>(bytes), size);
  btf__free(made);
  return text;
}

constexpr uint32_t kSevenArgsId = 4;
const std::vector<const char*> kTestFuncs = {"bpf_fentry_test1",
                                             "bpf_modify_return_test2"};

// A kernel with everything, to take away from.
class FeaturesTest : public ::testing::Test {
 protected:
  FeaturesTest() : features_(bpf_, perf_, kernel_.files()) {
    for (uint32_t attach_type :
         {kBpfTraceKprobeMulti, kBpfTraceKprobeSession, kBpfTraceFentryMulti,
          kBpfTraceFsessionMulti}) {
      bpf_.answers[attach_type].link_err = EFAULT;
    }
    kernel_.WritePath(kBtfPath, MakeBtf(kTestFuncs, {}));
    kernel_.WritePath("sys/bus/event_source/devices/kprobe/type", "8\n");
    kernel_.WritePath("sys/bus/event_source/devices/kprobe/format/retprobe",
                      "config:0\n");
    fds_before_ = CountOpenFds();
  }

  void TearDown() override { EXPECT_EQ(CountOpenFds(), fds_before_); }

  size_t calls() const { return bpf_.calls() + perf_.calls(); }

  // Every attach type loses its permission.
  void WithoutPrivilege() {
    for (uint32_t attach_type = 24; attach_type <= 61; ++attach_type) {
      bpf_.answers[attach_type] = {EPERM, EPERM};
    }
    perf_.options().privileged = false;
  }

  FakeKinds bpf_;
  FakePerf perf_;
  FakeKernel kernel_;
  Features features_;
  size_t fds_before_ = 0;
};

TEST_F(FeaturesTest, NothingIsAskedBeforeItIsNeeded) {
  testing::OpenCounter opens;
  opens.Watch(kernel_.root() + "/" + kBtfPath);
  EXPECT_EQ(calls(), 0u);
  features_.Remember(Kind::kKprobeMulti, EINVAL);
  EXPECT_EQ(calls(), 0u);
  ASSERT_TRUE(*features_.Has(Kind::kKprobeMulti));
  EXPECT_EQ(calls(), 2u);
  EXPECT_EQ(opens.Opens(kernel_.root() + "/" + kBtfPath), 0);
}

TEST_F(FeaturesTest, BugCase63_NoSessionProgramForAPlanWithoutSessions) {
  for (Kind kind : {Kind::kKprobeMulti, Kind::kKretprobeMulti, Kind::kKprobe,
                    Kind::kKretprobe, Kind::kFentry, Kind::kFexit}) {
    EXPECT_TRUE(*features_.Has(kind)) << KindName(kind);
  }
  EXPECT_THAT(bpf_.loads, ElementsAre(kBpfTraceKprobeMulti, kBpfTraceFentry));
  EXPECT_THAT(bpf_.links, ElementsAre(kBpfTraceKprobeMulti, kBpfTraceFentry));
  EXPECT_EQ(perf_.calls(), 1u);
}

TEST_F(FeaturesTest, EverythingIsAskedOnce) {
  testing::OpenCounter opens;
  opens.Watch(kernel_.root() + "/" + kBtfPath);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kKindCnt; ++i) {
      EXPECT_TRUE(*features_.Has(static_cast<Kind>(i))) << i;
    }
    EXPECT_EQ(*features_.MaxTrampolineArgs(), 12u);
    EXPECT_EQ(features_.Limits()->max_args, 12u);
    EXPECT_TRUE(features_.Limits()->struct_args);
  }
  // A program and a link for each of six, and for the seven arguments.
  EXPECT_EQ(bpf_.calls(), 14u);
  EXPECT_EQ(perf_.calls(), 1u);
  EXPECT_EQ(opens.Opens(kernel_.root() + "/" + kBtfPath), 1);
}

TEST_F(FeaturesTest, ThreadsAskOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      EXPECT_TRUE(*features_.Has(Kind::kKprobeSession));
      features_.Remember(Kind::kKprobeSession, EINVAL);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bpf_.calls(), 2u);
}

struct Case {
  Kind kind;
  uint32_t attach_type;
  Answer answer;
  Support want;
  const char* says;
};

constexpr Case kCases[] = {
    {Kind::kKprobeMulti, 42, {0, EFAULT}, Support::kYes, "tried"},
    {Kind::kKprobeMulti,
     42,
     {0, EOPNOTSUPP},
     Support::kNo,
     "CONFIG_FPROBE is off: the kernel answered EOPNOTSUPP"},
    // Before Linux 5.18 the program loads, as its attach type is not looked at.
    {Kind::kKprobeMulti,
     42,
     {0, EINVAL},
     Support::kNo,
     "came with Linux 5.18: the kernel answered EINVAL"},
    {Kind::kKprobeMulti, 42, {E2BIG, 0}, Support::kNo, "Linux 5.18"},
    {Kind::kKprobeMulti, 42, {ENOSYS, 0}, Support::kNo, "CONFIG_BPF_SYSCALL"},
    {Kind::kKprobeMulti, 42, {EPERM, 0}, Support::kNotPermitted, "CAP_PERFMON"},
    {Kind::kKprobeMulti, 42, {0, EACCES}, Support::kNotPermitted, "EACCES"},
    {Kind::kKprobeMulti, 42, {0, ENOMEM}, Support::kUnknown, "trying failed"},
    {Kind::kKprobeSession, 56, {0, EFAULT}, Support::kYes, "tried"},
    // Debian's Linux 6.1.
    {Kind::kKprobeSession, 56, {0, EINVAL}, Support::kNo, "Linux 6.10"},
    {Kind::kKprobeSession, 56, {0, EOPNOTSUPP}, Support::kNo, "CONFIG_FPROBE"},
    {Kind::kFentryMulti, 59, {0, EFAULT}, Support::kYes, "tried"},
    {Kind::kFentryMulti, 59, {EINVAL, 0}, Support::kNo, "not known"},
    {Kind::kFentryMulti, 59, {0, EOPNOTSUPP}, Support::kNo, "direct calls"},
    {Kind::kFsessionMulti, 61, {0, EFAULT}, Support::kYes, "tried"},
    {Kind::kFsessionMulti, 61, {EOPNOTSUPP, 0}, Support::kNo, "session"},
    {Kind::kFentry, 24, {0, 0}, Support::kYes, "bpf_fentry_test1"},
    {Kind::kFentry, 24, {EINVAL, 0}, Support::kNo, "Linux 5.5"},
    {Kind::kFentry, 24, {0, EBUSY}, Support::kUnknown, "trying failed"},
    {Kind::kFsession, 58, {0, 0}, Support::kYes, "tried"},
    {Kind::kFsession, 58, {EINVAL, 0}, Support::kNo, "Linux 7.0 or so"},
    {Kind::kFsession, 58, {EOPNOTSUPP, 0}, Support::kNo, "architecture"},
};

TEST_F(FeaturesTest, WhatTheKernelsAnswersMean) {
  for (const Case& c : kCases) {
    bpf_.answers[c.attach_type] = c.answer;
    Features features(bpf_, perf_, kernel_.files());
    const Feature feature = features.Find(c.kind);
    EXPECT_EQ(feature.support, c.want) << feature.why;
    EXPECT_TRUE(feature.tried);
    EXPECT_THAT(feature.why, HasSubstr(c.says)) << KindName(c.kind);
    EXPECT_EQ(features.Why(c.kind), feature.why);
    const absl::StatusOr<bool> has = features.Has(c.kind);
    EXPECT_EQ(has.ok(), c.want == Support::kYes || c.want == Support::kNo);
    if (has.ok()) {
      EXPECT_EQ(*has, c.want == Support::kYes);
    } else {
      EXPECT_NE(ErrnoOf(has.status()), 0);
      EXPECT_EQ(has.status().code() == absl::StatusCode::kPermissionDenied,
                c.want == Support::kNotPermitted);
    }
  }
}

TEST_F(FeaturesTest, BugCase66_TheEnumeratorIsNotTheFeature) {
  // A kernel that knows the attach type, as Debian's 6.1, and was built without
  // what it takes; as root, and as nobody, who can only read BTF.
  bpf_.answers[kBpfTraceKprobeMulti] = {0, EOPNOTSUPP};
  EXPECT_FALSE(*features_.Has(Kind::kKprobeMulti));
  WithoutPrivilege();
  Features nobody(bpf_, perf_, kernel_.files());
  EXPECT_THAT(nobody.Why(Kind::kKprobeMulti),
              HasSubstr("by its BTF the kernel does not have it"));

  kernel_.WritePath(
      kBtfPath, MakeBtf({"bpf_session_is_return"}, {"bpf_kprobe_multi_link"}));
  Features fprobe(bpf_, perf_, kernel_.files());
  for (Kind kind : {Kind::kKprobeMulti, Kind::kKprobeSession}) {
    EXPECT_THAT(fprobe.Why(kind), HasSubstr("by its BTF the kernel has it"));
    EXPECT_EQ(fprobe.Has(kind).status().code(),
              absl::StatusCode::kPermissionDenied);
  }
  EXPECT_THAT(fprobe.Why(Kind::kFentryMulti), HasSubstr("does not have it"));

  FakeKernel without;
  Features no_btf(bpf_, perf_, without.files());
  EXPECT_THAT(no_btf.Why(Kind::kKprobeMulti), Not(HasSubstr("BTF")));
}

TEST_F(FeaturesTest, BugCase67_LoadingIsNotAttaching) {
  bpf_.answers[kBpfTraceFentry] = {0, kKernelEnotsupp};
  EXPECT_FALSE(*features_.Has(Kind::kFentry));
  EXPECT_FALSE(*features_.Has(Kind::kFexit));
  EXPECT_THAT(features_.Why(Kind::kFexit),
              HasSubstr("the kernel answered ENOTSUPP (524)"));
  EXPECT_EQ(features_.MaxTrampolineArgs().status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(features_.Limits().status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(bpf_.calls(), 2u);
}

TEST_F(FeaturesTest, NotSupportedIsRemembered) {
  for (int err : {EOPNOTSUPP, kKernelEnotsupp}) {
    Features features(bpf_, perf_, kernel_.files());
    features.Remember(Kind::kKretprobeMulti, err);
    EXPECT_FALSE(*features.Has(Kind::kKprobeMulti));
    EXPECT_THAT(features.Why(Kind::kKprobeMulti),
                HasSubstr("an attach failed: the kernel answered "));
  }
  EXPECT_EQ(calls(), 0u);
}

TEST_F(FeaturesTest, OtherFailuresAreNotAboutTheKernel) {
  for (int err : {0, EINVAL, EPERM, ENOENT, ENOMEM, EMFILE, EBUSY, EFAULT}) {
    features_.Remember(Kind::kKprobeMulti, err);
  }
  EXPECT_TRUE(*features_.Has(Kind::kKprobeMulti));
}

// fexit.multi on a function with a wide return value, fentry on one with many
// arguments: what was tried stands.
TEST_F(FeaturesTest, WhatWasTriedStands) {
  features_.Remember(Kind::kFexitMulti, EOPNOTSUPP);
  EXPECT_TRUE(*features_.Has(Kind::kFexitMulti));
  features_.Remember(Kind::kFentry, kKernelEnotsupp);
  EXPECT_TRUE(*features_.Has(Kind::kFentry));
}

TEST_F(FeaturesTest, FentryIsABeliefWithoutAFunctionToTryOn) {
  kernel_.WritePath(kBtfPath, MakeBtf({}, {}));
  const Feature feature = features_.Find(Kind::kFentry);
  EXPECT_EQ(feature.support, Support::kYes);
  EXPECT_FALSE(feature.tried);
  EXPECT_THAT(feature.why, HasSubstr("not tried"));
  EXPECT_EQ(*features_.MaxTrampolineArgs(), 6u);
  EXPECT_EQ(features_.Limits()->max_args, 6u);
  EXPECT_FALSE(features_.Limits()->struct_args);
  EXPECT_FALSE(features_.Limits()->union_args);
  EXPECT_EQ(calls(), 0u);
  features_.Remember(Kind::kFentry, kKernelEnotsupp);
  EXPECT_FALSE(*features_.Has(Kind::kFentry));
}

TEST_F(FeaturesTest, FentryWithoutBtf) {
  FakeKernel without;
  Features features(bpf_, perf_, without.files());
  EXPECT_FALSE(*features.Has(Kind::kFentry));
  EXPECT_THAT(features.Why(Kind::kFentry), HasSubstr("CONFIG_DEBUG_INFO_BTF"));
  EXPECT_THAT(features.Why(Kind::kFentry), HasSubstr(without.root()));
  EXPECT_EQ(calls(), 0u);
}

TEST_F(FeaturesTest, BrokenBtfIsNoAnswer) {
  kernel_.WritePath(kBtfPath, "not BTF, but longer than a header of it is");
  EXPECT_EQ(features_.Find(Kind::kFentry).support, Support::kUnknown);
  EXPECT_FALSE(features_.Has(Kind::kFentry).ok());
  EXPECT_FALSE(features_.MaxTrampolineArgs().ok());
}

TEST_F(FeaturesTest, BugCase51_ArgumentsOfTrampolinesAreTried) {
  bpf_.link_err_by_btf_id[kSevenArgsId] = kKernelEnotsupp;
  EXPECT_EQ(*features_.MaxTrampolineArgs(), 6u);
  bpf_.link_err_by_btf_id.clear();
  // Remembered.
  EXPECT_EQ(*features_.MaxTrampolineArgs(), 6u);

  Features roomy(bpf_, perf_, kernel_.files());
  EXPECT_EQ(*roomy.MaxTrampolineArgs(), 12u);

  kernel_.WritePath(kBtfPath, MakeBtf({"bpf_fentry_test1"}, {}));
  Features old(bpf_, perf_, kernel_.files());
  EXPECT_EQ(*old.MaxTrampolineArgs(), 6u);

  kernel_.WritePath(kBtfPath, MakeBtf(kTestFuncs, {}));
  Features busy(bpf_, perf_, kernel_.files());
  bpf_.link_err_by_btf_id[kSevenArgsId] = ENOMEM;
  EXPECT_EQ(ErrnoOf(busy.MaxTrampolineArgs().status()), ENOMEM);
  bpf_.link_err_by_btf_id.clear();
  EXPECT_EQ(*busy.MaxTrampolineArgs(), 12u);
}

TEST_F(FeaturesTest, PassingTroubleIsTriedAgain) {
  bpf_.answers[kBpfTraceKprobeMulti].load_err = ENOMEM;
  EXPECT_EQ(ErrnoOf(features_.Has(Kind::kKprobeMulti).status()), ENOMEM);
  bpf_.answers[kBpfTraceKprobeMulti].load_err = 0;
  EXPECT_TRUE(*features_.Has(Kind::kKprobeMulti));
}

TEST_F(FeaturesTest, ASignalWhileLoadingIsNoAnswer) {
  bpf_.answers[kBpfTraceKprobeMulti].load_err = EAGAIN;
  EXPECT_EQ(features_.Find(Kind::kKprobeMulti).support, Support::kUnknown);
  EXPECT_EQ(bpf_.loads.size(), 5u);
}

TEST_F(FeaturesTest, PerfKprobes) {
  EXPECT_TRUE(*features_.Has(Kind::kKretprobe));

  perf_.options().privileged = false;
  Features nobody(bpf_, perf_, kernel_.files());
  EXPECT_EQ(nobody.Find(Kind::kKprobe).support, Support::kNotPermitted);

  FakeKernel without;
  Features no_pmu(bpf_, perf_, without.files());
  EXPECT_FALSE(*no_pmu.Has(Kind::kKprobe));
  EXPECT_THAT(no_pmu.Why(Kind::kKprobe), HasSubstr("CONFIG_KPROBE_EVENTS"));

  kernel_.WritePath("sys/bus/event_source/devices/kprobe/type", "9\n");
  perf_.options().privileged = true;
  Features gone(bpf_, perf_, kernel_.files());
  EXPECT_FALSE(*gone.Has(Kind::kKprobe));
  EXPECT_THAT(bpf_.loads, IsEmpty());
}

TEST_F(FeaturesTest, TextHasALineForEachKind) {
  bpf_.answers[kBpfTraceKprobeSession] = {0, EOPNOTSUPP};
  const std::string text = features_.ToString();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), kKindCnt);
  EXPECT_THAT(text, HasSubstr("kprobe.multi    yes            tried"));
  EXPECT_THAT(text, HasSubstr("kprobe.session  no             CONFIG_FPROBE is "
                              "off: the kernel answered EOPNOTSUPP\n"));
  const size_t asked = calls();
  EXPECT_EQ(features_.ToString(), text);
  EXPECT_EQ(calls(), asked);
}

TEST_F(FeaturesTest, TextWithoutPrivilege) {
  WithoutPrivilege();
  const std::string text = features_.ToString();
  EXPECT_THAT(text, HasSubstr("fentry.multi    not permitted  "));
  EXPECT_THAT(text, Not(HasSubstr("yes")));
}

}  // namespace
}  // namespace ksweep
