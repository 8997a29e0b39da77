#include "lib/source/list_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "ksweep/status.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

namespace fs = std::filesystem;

using testing::FakeKernel;
using ::testing::HasSubstr;
using testing::OpenCounter;
using testing::OpenDescriptors;

constexpr std::string_view kNewPlace =
    "sys/kernel/tracing/available_filter_functions";
constexpr std::string_view kOldPlace =
    "sys/kernel/debug/tracing/available_filter_functions";

absl::StatusOr<std::string> ReadAll(ListFile* file, size_t size = 1000) {
  std::string text, buffer(size, '\0');
  for (;;) {
    absl::StatusOr<size_t> got = file->Read(buffer.data(), buffer.size());
    if (!got.ok()) return got.status();
    if (*got == 0) return text;
    text.append(buffer, 0, *got);
  }
}

// The text of the filter list below the root of `kernel`.
absl::StatusOr<std::string> ReadFilterList(const FakeKernel& kernel) {
  absl::StatusOr<ListFile> file =
      ListFile::Open(kernel.files(), KernelFile::kFilterFunctions);
  if (!file.ok()) return file.status();
  return ReadAll(&*file);
}

void LinkToItself(const FakeKernel& kernel, std::string_view path) {
  const fs::path place = fs::path(kernel.root()) / path;
  fs::create_directories(place.parent_path());
  fs::create_symlink(place, place);
}

// Runs the rest of a test as a user that permissions apply to.
class AsNobody {
 public:
  AsNobody() : root_(geteuid() == 0), ok_(!root_ || seteuid(65534) == 0) {}
  ~AsNobody() {
    if (root_ && ok_ && seteuid(0) != 0) abort();
  }
  bool ok() const { return ok_; }

 private:
  bool root_;
  bool ok_;
};

TEST(ListFile, CountsWhatIsDone) {
  FakeKernel kernel;
  kernel.Write(KernelFile::kKallsyms, "0123456789");
  absl::StatusOr<ListFile> file =
      ListFile::Open(kernel.files(), KernelFile::kKallsyms);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->stats().path, "proc/kallsyms");
  EXPECT_EQ(file->stats().opens, 1u);
  EXPECT_EQ(file->stats().passes, 1u);
  EXPECT_EQ(file->stats().reads, 0u);
  EXPECT_EQ(file->stats().bytes, 0u);
  EXPECT_EQ(file->read_ns(), 0);

  char buffer[4];
  for (size_t want : {4, 4, 2, 0, 0}) {
    EXPECT_EQ(*file->Read(buffer, sizeof(buffer)), want);
  }
  EXPECT_EQ(file->stats().reads, 5u);
  EXPECT_EQ(file->stats().bytes, 10u);
  EXPECT_GT(file->read_ns(), 0);

  ASSERT_EQ(file->Rewind(), absl::OkStatus());
  EXPECT_EQ(*ReadAll(&*file, 3), "0123456789");
  EXPECT_EQ(file->stats().opens, 1u);
  EXPECT_EQ(file->stats().passes, 2u);
  EXPECT_EQ(file->stats().bytes, 20u);
}

struct StatsPathCase {
  std::string root;      // "%" stands for that of the fake kernel
  std::string override;  // empty: none
  std::string want;
};

TEST(ListFile, ReportsThePathBelowTheRootOrAsGiven) {
  const StatsPathCase kCases[] = {
      {"%", "", "proc/kallsyms"},
      {"%/", "", "proc/kallsyms"},
      {"%/.", "", "proc/kallsyms"},
      {"/", "%/proc/kallsyms", "%/proc/kallsyms"},
      {"%", "%/proc/kallsyms", "%/proc/kallsyms"},
      {"/nowhere", "%/proc/kallsyms", "%/proc/kallsyms"},
      {"%", "%/proc/../proc/kallsyms", "%/proc/../proc/kallsyms"},
  };
  FakeKernel kernel;
  kernel.Write(KernelFile::kKallsyms, "x");
  const auto filled = [&kernel](std::string text) {
    if (text.substr(0, 1) == "%") text.replace(0, 1, kernel.root());
    return text;
  };
  for (const StatsPathCase& c : kCases) {
    KernelFiles files(filled(c.root));
    if (!c.override.empty()) {
      files.Override(KernelFile::kKallsyms, filled(c.override));
    }
    const absl::StatusOr<ListFile> file =
        ListFile::Open(files, KernelFile::kKallsyms);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->stats().path, filled(c.want))
        << c.root << " " << c.override;
  }
}

TEST(ListFile, RelativeRoot) {
  FakeKernel kernel;
  kernel.Write(KernelFile::kKallsyms, "x");
  const fs::path before = fs::current_path();
  fs::current_path(kernel.root());
  for (const char* root : {"", ".", "./"}) {
    const absl::StatusOr<ListFile> file =
        ListFile::Open(KernelFiles(root), KernelFile::kKallsyms);
    EXPECT_TRUE(file.ok()) << file.status();
    if (file.ok()) {
      EXPECT_EQ(file->stats().path, "proc/kallsyms");
    }
  }
  fs::current_path(before);
}

TEST(ListFile, Missing) {
  const FakeKernel kernel;
  for (int i = 0; i < kKernelFileCnt; ++i) {
    const KernelFile kind = static_cast<KernelFile>(i);
    const absl::Status status = ListFile::Open(kernel.files(), kind).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_EQ(ErrnoOf(status), ENOENT);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("cannot open " + kernel.Path(kind) +
                          ": No such file or directory"));
  }
}

TEST(ListFile, DisabledIsMissingWithoutACall) {
  FakeKernel kernel;
  for (int i = 0; i < kKernelFileCnt; ++i) {
    const KernelFile kind = static_cast<KernelFile>(i);
    kernel.Write(kind, "there");
    KernelFiles files = kernel.files();
    files.Disable(kind);
    const absl::Status status = ListFile::Open(files, kind).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_EQ(ErrnoOf(status), 0);
    EXPECT_EQ(std::string(status.message()),
              std::string(KernelFilePath(kind)) + " is disabled");
  }
}

TEST(ListFile, OverrideHasNoSecondPlace) {
  FakeKernel kernel;
  kernel.WritePath(kOldPlace, "old\n");
  KernelFiles files = kernel.files();
  files.Override(KernelFile::kFilterFunctions, kernel.root() + "/nothing");
  const absl::Status status =
      ListFile::Open(files, KernelFile::kFilterFunctions).status();
  EXPECT_EQ(ErrnoOf(status), ENOENT);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(kernel.root() + "/nothing"));
}

TEST(ListFile, ReadErrorNamesTheFile) {
  const FakeKernel kernel;
  const std::string path = kernel.Path(KernelFile::kKallsyms);
  fs::create_directories(path);
  absl::StatusOr<ListFile> file =
      ListFile::Open(kernel.files(), KernelFile::kKallsyms);
  ASSERT_TRUE(file.ok()) << file.status();
  char buffer[16];
  const absl::Status status = file->Read(buffer, sizeof(buffer)).status();
  EXPECT_EQ(ErrnoOf(status), EISDIR);
  EXPECT_EQ(std::string(status.message()),
            "cannot read " + path + ": Is a directory");
  EXPECT_EQ(file->stats().bytes, 0u);
}

// Both ends of a pipe; reading them does not need a file to be made.
struct Pipe {
  Pipe() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) abort();
    reader = UniqueFd(fds[0]);
    writer = UniqueFd(fds[1]);
  }
  KernelFiles files() const {
    KernelFiles files;
    files.Override(KernelFile::kKallsyms,
                   "/proc/self/fd/" + std::to_string(reader.get()));
    return files;
  }

  UniqueFd reader, writer;
};

TEST(ListFile, RewindOfAPipeFails) {
  const Pipe pipe;
  absl::StatusOr<ListFile> file =
      ListFile::Open(pipe.files(), KernelFile::kKallsyms);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Status status = file->Rewind();
  EXPECT_EQ(ErrnoOf(status), ESPIPE) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("again"));
  EXPECT_EQ(file->stats().passes, 1u);
}

TEST(ListFile, SignalsDoNotDisturbReading) {
  struct sigaction action = {}, before;
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);  // without SA_RESTART
  Pipe pipe;
  absl::StatusOr<ListFile> file =
      ListFile::Open(pipe.files(), KernelFile::kKallsyms);
  ASSERT_TRUE(file.ok()) << file.status();
  absl::StatusOr<std::string> text = "";
  std::thread reader([&file, &text] { text = ReadAll(&*file); });
  for (int i = 0; i < 20; ++i) {
    pthread_kill(reader.native_handle(), SIGUSR1);
    usleep(1000);
  }
  EXPECT_EQ(write(pipe.writer.get(), "text", 4), 4);
  for (int i = 0; i < 20; ++i) {
    pthread_kill(reader.native_handle(), SIGUSR1);
    usleep(1000);
  }
  pipe.writer = UniqueFd();
  reader.join();
  sigaction(SIGUSR1, &before, nullptr);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "text");
}

// The descriptor of this process that has `path` open, or -1.
int DescriptorOf(const std::string& path) {
  for (const fs::directory_entry& entry :
       fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (fs::read_symlink(entry.path(), error) == fs::path(path)) {
      return std::stoi(entry.path().filename());
    }
  }
  return -1;
}

TEST(ListFile, IsNotInherited) {
  FakeKernel kernel;
  kernel.Write(KernelFile::kKallsyms, "x");
  const absl::StatusOr<ListFile> file =
      ListFile::Open(kernel.files(), KernelFile::kKallsyms);
  ASSERT_TRUE(file.ok()) << file.status();
  const int fd =
      DescriptorOf(fs::canonical(kernel.Path(KernelFile::kKallsyms)));
  ASSERT_GE(fd, 0);
  EXPECT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
}

TEST(ListFile, MovesWithItsPlace) {
  FakeKernel kernel;
  kernel.Write(KernelFile::kKallsyms, "0123456789");
  const int before = OpenDescriptors();
  {
    absl::StatusOr<ListFile> first =
        ListFile::Open(kernel.files(), KernelFile::kKallsyms);
    ASSERT_TRUE(first.ok()) << first.status();
    char buffer[4];
    ASSERT_TRUE(first->Read(buffer, sizeof(buffer)).ok());
    ListFile second = *std::move(first);
    EXPECT_EQ(OpenDescriptors(), before + 1);
    EXPECT_EQ(*ReadAll(&second), "456789");
    EXPECT_EQ(second.stats().bytes, 10u);
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(ReadSmallFile, TheWholeTextWhateverItsSize) {
  for (size_t size : {0, 1, 255, 256, 257, 512, 10000}) {
    FakeKernel kernel;
    std::string want(size, 'x');
    if (size > 0) want.back() = '\n';
    kernel.Write(KernelFile::kKptrRestrict, want);
    const absl::StatusOr<std::string> text =
        ReadSmallFile(kernel.files(), KernelFile::kKptrRestrict);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text, want);
  }
}

TEST(ReadSmallFile, Refused) {
  const FakeKernel kernel;
  absl::Status status =
      ReadSmallFile(kernel.files(), KernelFile::kLockdown).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(ErrnoOf(status), ENOENT);

  fs::create_directories(kernel.Path(KernelFile::kLockdown));
  status = ReadSmallFile(kernel.files(), KernelFile::kLockdown).status();
  EXPECT_EQ(ErrnoOf(status), EISDIR) << status;
}

TEST(ListFile, BugCase48_EitherMountPoint) {
  FakeKernel kernel;
  kernel.WritePath(kOldPlace, "old\n");
  absl::StatusOr<ListFile> file =
      ListFile::Open(kernel.files(), KernelFile::kFilterFunctions);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*ReadAll(&*file), "old\n");
  EXPECT_EQ(file->stats().path, kOldPlace);
  EXPECT_EQ(file->stats().opens, 1u);

  // With both, the newer one, and the older one is left alone.
  kernel.WritePath(kNewPlace, "new\n");
  const std::string old_path = kernel.root() + "/" + std::string(kOldPlace);
  OpenCounter counter;
  counter.Watch(old_path);
  file = ListFile::Open(kernel.files(), KernelFile::kFilterFunctions);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*ReadAll(&*file), "new\n");
  EXPECT_EQ(file->stats().path, kNewPlace);
  EXPECT_EQ(counter.Opens(old_path), 0);
}

TEST(ListFile, BugCase48_AddrsListAtTheOlderMountPoint) {
  FakeKernel kernel;
  kernel.WritePath("sys/kernel/debug/tracing/available_filter_functions_addrs",
                   "10 a\n");
  EXPECT_TRUE(
      ListFile::Open(kernel.files(), KernelFile::kFilterFunctionsAddrs).ok());
}

TEST(ListFile, BugCase48_AtNeitherMountPoint) {
  const FakeKernel kernel;
  const absl::Status status = ReadFilterList(kernel).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(ErrnoOf(status), ENOENT);
  EXPECT_THAT(std::string(status.message()), HasSubstr(kNewPlace));
}

TEST(ListFile, BugCase48_DanglingLinkIsMissing) {
  FakeKernel kernel;
  kernel.WritePath(kOldPlace, "old\n");
  const fs::path place = fs::path(kernel.root()) / kNewPlace;
  fs::create_directories(place.parent_path());
  fs::create_symlink("nowhere", place);
  EXPECT_EQ(*ReadFilterList(kernel), "old\n");
}

// What is there and cannot be opened is an answer: another file is no
// substitute for it.
TEST(ListFile, BugCase48_FirstErrorIsKept) {
  FakeKernel kernel;
  kernel.WritePath(kOldPlace, "old\n");
  LinkToItself(kernel, kNewPlace);
  const std::string old_path = kernel.root() + "/" + std::string(kOldPlace);
  OpenCounter counter;
  counter.Watch(old_path);
  const absl::Status status = ReadFilterList(kernel).status();
  EXPECT_EQ(ErrnoOf(status), ELOOP) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(kNewPlace));
  EXPECT_EQ(counter.Opens(old_path), 0);
}

TEST(ListFile, BugCase48_FolderIsNoFolder) {
  FakeKernel kernel;
  kernel.WritePath(kOldPlace, "old\n");
  kernel.WritePath("sys/kernel/tracing", "a file");
  const absl::Status status = ReadFilterList(kernel).status();
  EXPECT_EQ(ErrnoOf(status), ENOTDIR) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(kNewPlace));
}

TEST(ListFile, BugCase48_NotPermitted) {
  FakeKernel kernel;
  kernel.WritePath(kOldPlace, "old\n");
  kernel.WritePath(kNewPlace, "new\n");
  fs::permissions(kernel.root(), fs::perms(0755));
  fs::permissions(fs::path(kernel.root()) / kNewPlace, fs::perms::none);
  const AsNobody nobody;
  if (!nobody.ok()) GTEST_SKIP() << "root that cannot become another user";
  const absl::Status status = ReadFilterList(kernel).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_EQ(ErrnoOf(status), EACCES);
  EXPECT_THAT(std::string(status.message()), HasSubstr(kNewPlace));
}

TEST(ListFile, BugCase58_ErrnoIsTakenAtTheCall) {
  FakeKernel kernel;
  LinkToItself(kernel, KernelFilePath(KernelFile::kKallsyms));
  const absl::Status refused =
      ListFile::Open(kernel.files(), KernelFile::kKallsyms).status();
  const absl::Status missing =
      ListFile::Open(kernel.files(), KernelFile::kBlacklist).status();
  errno = 0;
  EXPECT_EQ(ErrnoOf(refused), ELOOP);
  EXPECT_EQ(ErrnoOf(missing), ENOENT);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("Too many levels of symbolic links"));
}

TEST(ListFile, BugCase74_OneOpen) {
  FakeKernel kernel;
  kernel.Write(KernelFile::kKallsyms, std::string(300000, 'x'));
  const std::string path = kernel.Path(KernelFile::kKallsyms);
  OpenCounter counter;
  counter.Watch(path);
  absl::StatusOr<ListFile> file =
      ListFile::Open(kernel.files(), KernelFile::kKallsyms);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(counter.Opens(path), 1);
  ASSERT_TRUE(ReadAll(&*file).ok());
  ASSERT_EQ(file->Rewind(), absl::OkStatus());
  ASSERT_TRUE(ReadAll(&*file).ok());
  EXPECT_EQ(counter.Opens(path), 1);
  EXPECT_EQ(file->stats().opens, 1u);
}

TEST(ListFile, BugCase76_NoDescriptorIsLeft) {
  FakeKernel kernel;
  kernel.Write(KernelFile::kKallsyms, "ffffffff81000000 T _stext\n");
  kernel.WritePath(kOldPlace, "old\n");
  LinkToItself(kernel, KernelFilePath(KernelFile::kLockdown));
  fs::create_directories(kernel.Path(KernelFile::kKptrRestrict));
  KernelFiles files = kernel.files();
  files.Disable(KernelFile::kFilterFunctionsAddrs);

  const int before = OpenDescriptors();
  for (int i = 0; i < 1000; ++i) {
    const KernelFile kind = static_cast<KernelFile>(i % kKernelFileCnt);
    const bool want =
        kind == KernelFile::kKallsyms || kind == KernelFile::kFilterFunctions;
    EXPECT_EQ(ReadSmallFile(files, kind).ok(), want);
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

}  // namespace
}  // namespace ksweep
