#include "ksweep/module_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lib/source/modules.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using testing::FakeKernel;
using ::testing::IsEmpty;

struct ModulesCase {
  const char* text;
  std::vector<std::string> names;
  uint64_t addr;  // of the first
};

TEST(ParseModules, Cases) {
  const ModulesCase cases[] = {
      {"", {}, 0},
      {"veth 45056 0 - Live 0xffffffffc0a3d000\n",
       {"veth"},
       0xffffffffc0a3d000},
      {"a 1 0 - Live 0x10 (OE)\nb 1 2 c,d, Live 0x20\n", {"a", "b"}, 0x10},
      {"a 1 1 - Loading 0x10\nb 1 0 - Unloading 0x20\nc 1 0 - Live 0x30\n",
       {"c"},
       0x30},
      {"hidden 1 0 - Live 0x0000000000000000\n", {"hidden"}, 0},
      {"no_newline 1 0 - Live 0x5", {"no_newline"}, 5},
      {"\nshort\nb 1 0 -\n", {}, 0},
  };
  for (const ModulesCase& c : cases) {
    const std::vector<LoadedModule> modules = ParseModules(c.text);
    std::vector<std::string> names;
    for (const LoadedModule& module : modules) names.push_back(module.name);
    EXPECT_EQ(names, c.names) << c.text;
    if (!modules.empty()) {
      EXPECT_EQ(modules[0].addr, c.addr) << c.text;
    }
  }
}

class ModuleWatchTest : public ::testing::Test {
 protected:
  void Load(std::string_view text) {
    kernel_.Write(KernelFile::kModules, text);
  }

  // A folder of its own each time, as the kernel makes one at each load.
  void MakeFolder(const std::string& module) {
    const std::string path = kernel_.root() + "/sys/module/" + module;
    // The old one is kept under another name, so that its inode is not free.
    if (std::filesystem::exists(path)) {
      std::filesystem::rename(path, path + ".old");
    }
    std::filesystem::create_directories(path);
  }

  ModuleChanges Poll() {
    absl::StatusOr<ModuleChanges> changes = watch_.Poll();
    EXPECT_TRUE(changes.ok()) << changes.status();
    return *changes;
  }

  FakeKernel kernel_;
  ModuleWatch watch_{kernel_.files()};
};

TEST_F(ModuleWatchTest, ComesAndGoes) {
  Load("b 1 0 - Live 0x20\na 1 0 - Live 0x10\n");
  ModuleChanges changes = Poll();
  EXPECT_THAT(changes.loaded, ElementsAre("a", "b"));
  EXPECT_THAT(changes.gone, IsEmpty());
  EXPECT_TRUE(Poll().empty());

  Load("a 1 0 - Live 0x10\nc 1 0 - Loading 0x30\n");
  changes = Poll();
  EXPECT_THAT(changes.loaded, IsEmpty());
  EXPECT_THAT(changes.gone, ElementsAre("b"));

  Load("a 1 0 - Live 0x10\nc 1 0 - Live 0x30\n");
  EXPECT_THAT(Poll().loaded, ElementsAre("c")) << "once it is live";
}

TEST_F(ModuleWatchTest, LoadedAgainElsewhere) {
  Load("a 1 0 - Live 0x10\n");
  Poll();
  Load("a 1 0 - Live 0x50\n");
  const ModuleChanges changes = Poll();
  EXPECT_THAT(changes.loaded, ElementsAre("a"));
  EXPECT_THAT(changes.gone, ElementsAre("a"));
}

TEST_F(ModuleWatchTest, LoadedAgainAtTheSamePlaceOrAtAHiddenOne) {
  Load("a 1 0 - Live 0x0\n");
  MakeFolder("a");
  Poll();
  MakeFolder("a");
  EXPECT_THAT(Poll().loaded, ElementsAre("a"));
  EXPECT_TRUE(Poll().empty());
}

TEST_F(ModuleWatchTest, AKernelWithoutModules) { EXPECT_TRUE(Poll().empty()); }

struct ConcernCase {
  const char* request;
  bool want;
};

TEST(ModuleChanges, ConcernRequestsThatLookIntoThem) {
  ModuleChanges changes;
  changes.loaded = {"nf_tables"};
  changes.gone = {"dummy"};
  const ConcernCase cases[] = {
      {"nf_*:*", true},
      {"dummy:x", true},
      {"tcp_v4_rcv", true},  // of any owner
      {"*", true},
      {"veth:*", false},
      {"vmlinux:tcp_*", false},
      {"!nf_*:*", false},
  };
  for (const ConcernCase& c : cases) {
    const std::vector<Request> requests = {*Request::Parse(c.request)};
    EXPECT_EQ(changes.Concern(requests), c.want) << c.request;
  }
}

}  // namespace
}  // namespace ksweep
