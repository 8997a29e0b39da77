#include "lib/resolve/symbol_name.h"

#include "gtest/gtest.h"

namespace ksweep {
namespace {

struct NeverCase {
  std::string_view name;
  bool want;
};

constexpr NeverCase kNeverCases[] = {
    {"vfs_q", false},
    {"__pfx_vfs_q", true},
    {"do__pfx_thing", false},
    {"__SCT__tp_func_x", true},
    {"__cfi_f", true},
    {"f.cfi_jt", true},
    {"f.9f3a.cfi_jt", true},
    {"vfs_q.cold", true},
    {"vfs_r.cold.12", true},
    {"coldplug_x", false},
    {"f.cold.x", false},
    {"cold", false},
    {"$x", true},
    {"$d", true},
    {"$a", true},
    {"$t", true},
    {"$x.17", true},
    {"$xy", false},
    {"a$x", false},
    {"__ftrace_invalid_address___512", true},
    {"", true},
};

TEST(SymbolName, NeverTarget) {
  for (const NeverCase& c : kNeverCases) {
    EXPECT_EQ(IsNeverTarget(c.name), c.want) << c.name;
  }
}

TEST(SymbolName, PseudoOwners) {
  EXPECT_TRUE(IsPseudoOwner("bpf"));
  EXPECT_TRUE(IsPseudoOwner("__builtin__ftrace"));
  EXPECT_TRUE(IsPseudoOwner("__builtin__kprobes"));
  EXPECT_FALSE(IsPseudoOwner("bpfilter"));
  EXPECT_FALSE(IsPseudoOwner(""));
}

struct SuffixCase {
  std::string_view name, want;
};

constexpr SuffixCase kLlvmCases[] = {
    {"f", "f"},
    {"f.llvm.10133", "f"},
    {"f.llvm.9af", "f"},
    {"f.llvm.", "f.llvm."},
    {"f.llvm.xyz", "f.llvm.xyz"},
    {"f.isra.0.llvm.7", "f.isra.0"},
    {".llvm.7", ".llvm.7"},
};

TEST(SymbolName, StripLlvm) {
  for (const SuffixCase& c : kLlvmCases) {
    EXPECT_EQ(StripLlvm(c.name), c.want) << c.name;
  }
}

// An empty `want`: no clone.
constexpr SuffixCase kCloneCases[] = {
    {"f", ""},           {"f.isra.0", "f"},     {"f.constprop.12", "f"},
    {"f.part.3", "f"},   {"f.lto_priv.0", "f"}, {"f.isra.0.part.1", "f.isra.0"},
    {"f.9f3a", "f"},     {"f.3", ""},           {"f.12c", ""},
    {"f.isra", ""},      {"f.isra.x", ""},      {"f.cold.1234", ""},
    {"f.llvm.1234", ""}, {".1234", ""},
};

TEST(SymbolName, StripCloneSuffix) {
  for (const SuffixCase& c : kCloneCases) {
    std::string_view name = c.name;
    EXPECT_EQ(StripCloneSuffix(&name), !c.want.empty()) << c.name;
    EXPECT_EQ(name, c.want.empty() ? c.name : c.want);
  }
}

}  // namespace
}  // namespace ksweep
