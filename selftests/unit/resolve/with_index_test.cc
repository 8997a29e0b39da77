// Resolving with an index gives what resolving with kallsyms does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "ksweep/symbol_index.h"
#include "selftests/unit/resolve/resolve_fixture.h"

namespace ksweep {
namespace {

// All that a resolution says.
std::string Describe(const absl::StatusOr<Resolution>& resolution) {
  if (!resolution.ok()) return resolution.status().ToString();
  std::string text;
  for (const Target& t : resolution->targets()) {
    text += absl::StrFormat("target %x %c %s %s %d %d", t.addr, t.type,
                            std::string(t.name), std::string(t.module), t.clone,
                            t.untested);
    for (std::string_view alias : t.aliases) text += " " + std::string(alias);
    for (uint32_t request : t.requests) text += absl::StrFormat(" %d", request);
    text += "\n";
  }
  for (const Omission& o : resolution->omissions()) {
    text += absl::StrFormat("omission %x %s %s %s\n", o.addr,
                            std::string(o.name), std::string(o.module),
                            std::string(ReasonName(o.reason)));
  }
  for (const Unmatched& u : resolution->unmatched()) {
    text += absl::StrFormat("unmatched %d %s", u.request,
                            std::string(ReasonName(u.reason)));
    for (std::string_view c : u.candidates) text += " " + std::string(c);
    text += "\n";
  }
  return text;
}

ResolveOptions Reporting() {
  ResolveOptions options;
  options.missing = OnMissing::kReport;
  return options;
}

const std::vector<std::vector<std::string>> kRequests = {
    {"*"},
    {"vfs_*", "!vfs_read"},
    {"vfs_read", "tcp_sendmsg", "no_such_function", "schedule"},
    {"xfs:xfs_*", "veth:*", "nomodule:x"},
    {"syscall:openat", "*.isra.*", "[a-c]*_lock"},
    {"vmlinux:*_show", "__pfx_vfs_read"},
};

TEST(ResolveWithIndex, TheSameAnswersForRealKernels) {
  for (const char* name : {"linux-7.3.4", "linux-6.12.95"}) {
    testing::FakeKernel kernel;
    kernel.Unpack(name);
    const auto index = SymbolIndex::FromKernel(kernel.files());
    ASSERT_TRUE(index.ok()) << index.status();
    for (const std::vector<std::string>& texts : kRequests) {
      ResolveOptions options = Reporting();
      const auto want =
          Resolve(testing::ParseAll(texts), kernel.files(), options);
      options.index = &*index;
      const auto got =
          Resolve(testing::ParseAll(texts), kernel.files(), options);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(Describe(got) == Describe(want)) << name << " " << texts[0];
      EXPECT_EQ(got->stats().files[0].opens, 0u);
    }
  }
}

TEST(ResolveWithIndex, TheSameAnswersForMadeUpKernels) {
  std::mt19937 rng(1);
  const std::vector<std::string> names = {"a",   "a.isra.0", "a.cold", "b_x",
                                          "b_y", "a.llvm.7", "__pfx_a"};
  for (int round = 0; round < 200; ++round) {
    testing::Lists lists;
    for (size_t cnt = 1 + rng() % 20; cnt > 0; --cnt) {
      const uint32_t module = rng() % 4;
      lists.kallsyms += absl::StrFormat(
          "%x %c %s%s\n",
          (module < 2 ? 0xffffffff81000000 : 0xffffffffc0000000) +
              rng() % 9 * 8,
          "tTWd"[rng() % 4], names[rng() % names.size()],
          module < 2 ? "" : absl::StrFormat("\t[m%d]", module));
    }
    testing::FakeKernel kernel;
    testing::WriteLists(lists, &kernel);
    const auto index = SymbolIndex::FromKernel(kernel.files());
    ASSERT_TRUE(index.ok()) << index.status() << lists.kallsyms;
    for (const std::vector<std::string>& texts :
         {std::vector<std::string>{"*"},
          {"a", "m2:b_*", "0xffffffff81000010"},
          {"b_x", "absent"}}) {
      ResolveOptions options = Reporting();
      options.clones = round % 2;
      const std::string want =
          Describe(Resolve(testing::ParseAll(texts), kernel.files(), options));
      options.index = &*index;
      EXPECT_EQ(
          Describe(Resolve(testing::ParseAll(texts), kernel.files(), options)),
          want)
          << lists.kallsyms;
    }
  }
}

TEST(ResolveWithIndex, OneThatKnowsNoModulesIsNotUsed) {
  testing::FakeKernel kernel;
  testing::WriteLists({"ffffffff81000000 T _stext\n"
                       "ffffffff81000010 T a\n"
                       "ffffffffc0000000 t b\t[m]\n"},
                      &kernel);
  kernel.WritePath("System.map",
                   "ffffffff81000000 T _stext\nffffffff81000010 T a\n");
  const auto index = SymbolIndex::FromSystemMap(kernel.root() + "/System.map");
  ASSERT_TRUE(index.ok()) << index.status();
  ResolveOptions options = Reporting();
  options.index = &*index;
  const auto resolution =
      Resolve(testing::ParseAll({"b"}), kernel.files(), options);
  ASSERT_TRUE(resolution.ok()) << resolution.status();
  EXPECT_EQ(resolution->targets().size(), 1u);
  EXPECT_THAT(resolution->stats().notes,
              ::testing::Contains(::testing::HasSubstr("knows no modules")));
}

}  // namespace
}  // namespace ksweep
