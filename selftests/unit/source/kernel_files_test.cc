#include "ksweep/kernel_files.h"

#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <string_view>

namespace ksweep {
namespace {

struct PlaceCase {
  KernelFile file;
  std::string_view path;
  std::string_view fallback;
};

constexpr PlaceCase kPlaceCases[] = {
    {KernelFile::kKallsyms, "proc/kallsyms", ""},
    {KernelFile::kKptrRestrict, "proc/sys/kernel/kptr_restrict", ""},
    {KernelFile::kFilterFunctions,
     "sys/kernel/tracing/available_filter_functions",
     "sys/kernel/debug/tracing/available_filter_functions"},
    {KernelFile::kFilterFunctionsAddrs,
     "sys/kernel/tracing/available_filter_functions_addrs",
     "sys/kernel/debug/tracing/available_filter_functions_addrs"},
    {KernelFile::kBlacklist, "sys/kernel/debug/kprobes/blacklist", ""},
    {KernelFile::kLockdown, "sys/kernel/security/lockdown", ""},
    {KernelFile::kBtfDir, "sys/kernel/btf", ""},
    {KernelFile::kNotes, "sys/kernel/notes", ""},
    {KernelFile::kBootId, "proc/sys/kernel/random/boot_id", ""},
    {KernelFile::kModules, "proc/modules", ""},
};

static_assert(std::size(kPlaceCases) == kKernelFileCnt);

struct RootCase {
  std::string_view root;
  std::string_view want;    // root()
  std::string_view prefix;  // of all paths
};

constexpr RootCase kRootCases[] = {
    {"/", "/", "/"},
    {"", ".", "./"},
    {".", ".", "./"},
    {"copy", "copy", "copy/"},
    {"copy/", "copy/", "copy/"},
    {"/some/root", "/some/root", "/some/root/"},
    {"/some/root/", "/some/root/", "/some/root/"},
    {"/some/with space/\xff", "/some/with space/\xff",
     "/some/with space/\xff/"},
};

std::string Joined(std::string_view prefix, std::string_view path) {
  return path.empty() ? "" : std::string(prefix) + std::string(path);
}

TEST(KernelFiles, PathsAreBelowTheRoot) {
  for (const RootCase& root : kRootCases) {
    const KernelFiles files{std::string(root.root)};
    EXPECT_EQ(files.root(), root.want);
    for (const PlaceCase& c : kPlaceCases) {
      EXPECT_EQ(KernelFilePath(c.file), c.path);
      EXPECT_EQ(files.Path(c.file), Joined(root.prefix, c.path));
      EXPECT_EQ(files.FallbackPath(c.file), Joined(root.prefix, c.fallback));
    }
  }
}

TEST(KernelFiles, TheRunningKernelsByDefault) {
  const KernelFiles files;
  EXPECT_EQ(files.root(), "/");
  EXPECT_EQ(files.Path(KernelFile::kKallsyms), "/proc/kallsyms");
}

TEST(KernelFiles, OverrideStandsForBothPlaces) {
  for (const PlaceCase& c : kPlaceCases) {
    KernelFiles files("/root");
    files.Override(c.file, "elsewhere/copy.txt");
    EXPECT_EQ(files.Path(c.file), "elsewhere/copy.txt");
    EXPECT_EQ(files.FallbackPath(c.file), "");
    for (const PlaceCase& other : kPlaceCases) {
      if (other.file == c.file) continue;
      EXPECT_EQ(files.Path(other.file), Joined("/root/", other.path));
      EXPECT_EQ(files.FallbackPath(other.file),
                Joined("/root/", other.fallback));
    }
  }
}

TEST(KernelFiles, DisabledFilesHaveNoPath) {
  for (const PlaceCase& c : kPlaceCases) {
    KernelFiles files("/root");
    files.Disable(c.file);
    EXPECT_EQ(files.Path(c.file), "");
    EXPECT_EQ(files.FallbackPath(c.file), "");
  }
}

TEST(KernelFiles, KnowsWhatIsOverridden) {
  for (const PlaceCase& c : kPlaceCases) {
    KernelFiles files("/root");
    EXPECT_FALSE(files.IsOverridden(c.file));
    files.Override(c.file, "/root/" + std::string(c.path));
    EXPECT_TRUE(files.IsOverridden(c.file));
    files.Disable(c.file);
    EXPECT_TRUE(files.IsOverridden(c.file));
    for (const PlaceCase& other : kPlaceCases) {
      EXPECT_EQ(files.IsOverridden(other.file), other.file == c.file);
    }
  }
}

TEST(KernelFiles, TheLastWordCounts) {
  KernelFiles files("/root");
  files.Override(KernelFile::kKallsyms, "a")
      .Override(KernelFile::kKallsyms, "b")
      .Disable(KernelFile::kBlacklist);
  EXPECT_EQ(files.Path(KernelFile::kKallsyms), "b");
  EXPECT_EQ(files.Path(KernelFile::kBlacklist), "");
  files.Disable(KernelFile::kKallsyms).Override(KernelFile::kBlacklist, "c");
  EXPECT_EQ(files.Path(KernelFile::kKallsyms), "");
  EXPECT_EQ(files.Path(KernelFile::kBlacklist), "c");
}

TEST(KernelFiles, IsAValue) {
  KernelFiles first("/first");
  first.Override(KernelFile::kLockdown, "x");
  KernelFiles second = first;
  second.Disable(KernelFile::kLockdown);
  EXPECT_EQ(first.Path(KernelFile::kLockdown), "x");
  EXPECT_EQ(second.Path(KernelFile::kLockdown), "");
  second = KernelFiles("/third");
  EXPECT_EQ(second.Path(KernelFile::kLockdown),
            "/third/sys/kernel/security/lockdown");
}

}  // namespace
}  // namespace ksweep
