// Mistakes of other programs, by their numbers in the log of such.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "ksweep/symbol_index.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SymbolIndex Index(std::string_view text, const BuildOptions& options = {}) {
  absl::StatusOr<SymbolIndex> index = SymbolIndex::FromText(text, options);
  EXPECT_TRUE(index.ok()) << index.status();
  return index.ok() ? *index : SymbolIndex();
}

// "name+0xoffset" of each symbol that holds `addr`.
std::vector<std::string> At(const SymbolIndex& index, uint64_t addr,
                            const SymbolizeOptions& options = {}) {
  std::vector<std::string> texts;
  const auto found = index.Symbolize(addr, options);
  if (!found.ok()) return {found.status().ToString()};
  for (const SymbolizedName& s : found->symbols) {
    texts.push_back(s.name + absl::StrFormat("+0x%x", s.offset));
  }
  // The short form gives the first of them.
  SymbolizedName first;
  const LookupState state = index.SymbolizeFirst(addr, &first, options);
  EXPECT_EQ(state == LookupState::kFound, !texts.empty());
  if (!texts.empty()) {
    EXPECT_EQ(first.name, found->symbols[0].name);
  }
  return texts;
}

std::vector<std::string> Glob(const SymbolIndex& index, std::string_view glob) {
  std::vector<std::string> names;
  EXPECT_TRUE(index
                  .FindGlob(glob,
                            [&](const IndexSymbolView& symbol) {
                              names.emplace_back(symbol.name);
                              return true;
                            })
                  .ok());
  return names;
}

TEST(IndexBugs, BugCase07_AnIndexOfZerosIsRefused) {
  constexpr std::string_view kZeros =
      "0000000000000000 T _stext\n"
      "0000000000000000 t tcp_v9_rcv\n"
      "0000000000000000 t nft_x_eval\t[nf_tables]\n";
  EXPECT_TRUE(
      absl::IsFailedPrecondition(SymbolIndex::FromText(kZeros).status()));
  testing::FakeKernel kernel;
  kernel.Write(KernelFile::kKallsyms, kZeros)
      .Write(KernelFile::kKptrRestrict, "2\n");
  const auto index = SymbolIndex::FromKernel(kernel.files());
  EXPECT_TRUE(absl::IsFailedPrecondition(index.status()));
  EXPECT_THAT(std::string(index.status().message()),
              HasSubstr("kptr_restrict is 2"));
}

TEST(IndexBugs, BugCase07_PartOfTheAddressesIsNotEnough) {
  const auto index = SymbolIndex::FromText(
      "ffffffff81000000 T _stext\n0000000000000000 t hidden\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(index.status()));
  EXPECT_THAT(std::string(index.status().message()), HasSubstr("'hidden'"));
}

TEST(IndexBugs, BugCase07_ZerosOfDataAreLegal) {
  EXPECT_EQ(Index("0000000000000000 A fixed_percpu_data\n"
                  "ffffffff81000000 T _stext\n")
                .size(),
            2u);
}

TEST(IndexBugs, BugCase10_NamesOfAnyLength) {
  std::string text;
  const size_t sizes[] = {127, 128, 255, 256, 511, 512, 5000};
  for (size_t size : sizes) {
    const std::string name(size, 'n');
    text += absl::StrFormat("%x t %s\t[m]\n", 0xffffffffc0000000 + size, name);
    text += absl::StrFormat("%x t %sA\t[m]\n", 0xffffffffc0100000 + size, name);
  }
  const SymbolIndex index = Index(text);
  for (size_t size : sizes) {
    const std::string name(size, 'n');
    EXPECT_EQ(index.FindAddress(name).addr, 0xffffffffc0000000 + size);
    EXPECT_EQ(index.FindAddress(name + "A").addr, 0xffffffffc0100000 + size);
    EXPECT_FALSE(index.FindAddress(name + "B").found());
    EXPECT_THAT(At(index, 0xffffffffc0000000 + size),
                ElementsAre(name + "+0x0"));
  }
}

TEST(IndexBugs, BugCase12_KallsymsIsNotSorted) {
  const SymbolIndex index = Index(
      "ffffffff81a00000 T core_b\n"
      "ffffffffc0200400 t bpf_prog_aa11_two\t[bpf]\n"
      "ffffffffc0200000 t bpf_prog_bb22_one\t[bpf]\n"
      "ffffffff81900000 t core_a\n");
  EXPECT_THAT(At(index, 0xffffffffc0200010),
              ElementsAre("bpf_prog_bb22_one+0x10"));
  EXPECT_THAT(At(index, 0xffffffff81900004), ElementsAre("core_a+0x4"));
}

TEST(IndexBugs, BugCase13_MappingSymbolsStayOut) {
  const SymbolIndex index = Index(
      "ffff800079a04120 d $d\t[ovsx]\n"
      "ffff800079a04120 d __tracepoint_ovsx_act\t[ovsx]\n"
      "ffff800079a10000 t $x.17\t[ovsx]\n"
      "ffff800079a10000 t ovsx_exec\t[ovsx]\n"
      "ffff800079a10100 t a$x\t[ovsx]\n"
      "ffff800079a10200 t $xy\t[ovsx]\n");
  EXPECT_EQ(index.size(), 4u);
  EXPECT_FALSE(index.FindAddress("$d").found());
  EXPECT_FALSE(index.FindAddress("$x.17").found());
  EXPECT_TRUE(index.FindAddress("a$x").found());
  EXPECT_TRUE(index.FindAddress("$xy").found());
  EXPECT_THAT(At(index, 0xffff800079a10004), ElementsAre("ovsx_exec+0x4"));
}

TEST(IndexBugs, BugCase14_Pads) {
  const SymbolIndex index = Index(
      "ffffffff81200fd0 t __pfx_vfs_q\n"
      "ffffffff81200fe0 t vfs_q\n"
      "ffffffff81201050 t do__pfx_thing\n");
  EXPECT_EQ(index.Stats().core.folded, 1u);
  EXPECT_THAT(Glob(index, "vfs_*"), ElementsAre("vfs_q"));
  EXPECT_THAT(Glob(index, "*"), ElementsAre("vfs_q", "do__pfx_thing"));
  EXPECT_THAT(Glob(index, "*__pfx*"), ElementsAre("do__pfx_thing"));
  EXPECT_THAT(Glob(index, "__pfx_*"), ElementsAre("__pfx_vfs_q"));
  EXPECT_THAT(At(index, 0xffffffff81200fd8), ElementsAre("__pfx_vfs_q+0x8"));
  EXPECT_EQ(index.FindAddress("__pfx_vfs_q").addr, 0xffffffff81200fd0);
  EXPECT_EQ(index.FindAddress("do__pfx_thing").addr, 0xffffffff81201050);
  EXPECT_FALSE(index.FindAddress("__pfx_do__pfx_thing").found());
  const auto found = index.Find("__pfx_vfs_q");
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].size, 16u);
}

TEST(IndexBugs, BugCase14_ASmallFunctionInFrontIsNoPad) {
  const SymbolIndex index = Index(
      "ffffffff81200fd0 t small\n"
      "ffffffff81200fe0 t vfs_q\n");
  EXPECT_EQ(index.Stats().core.folded, 0u);
  EXPECT_THAT(At(index, 0xffffffff81200fd8), ElementsAre("small+0x8"));
  EXPECT_FALSE(index.FindAddress("__pfx_vfs_q").found());
}

TEST(IndexBugs, BugCase17_DataWithAFunctionsName) {
  const auto found = Index(
                         "ffffffff82c41040 d ring_ops\n"
                         "ffffffff81431000 t ring_ops\n")
                         .Find("ring_ops");
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].type, 't');
  EXPECT_EQ((*found)[1].type, 'd');
}

TEST(IndexBugs, BugCase19_SizesComeFromTheFullList) {
  const SymbolIndex index = Index(
      "ffffffff81000100 T fn_a\n"
      "ffffffff81000140 d blob_1\n"
      "ffffffff81000180 d blob_2\n"
      "ffffffff81000200 T fn_b\n");
  SymbolizeOptions functions;
  functions.functions_only = true;
  EXPECT_THAT(At(index, 0xffffffff81000150, functions), IsEmpty());
  EXPECT_THAT(At(index, 0xffffffff81000150), ElementsAre("blob_1+0x10"));
  EXPECT_THAT(At(index, 0xffffffff8100013f, functions),
              ElementsAre("fn_a+0x3f"));
  EXPECT_EQ((*index.Find("fn_a"))[0].size, 0x40u);
}

TEST(IndexBugs, BugCase20_NoAnswerAcrossAGap) {
  const SymbolIndex index = Index(
      "0000000000021000 A pcpu_x\n"
      "ffffffff81000000 T _stext\n");
  EXPECT_THAT(At(index, 0x7ffd12345678), IsEmpty());
  EXPECT_THAT(At(index, 0x21010), ElementsAre("pcpu_x+0x10"));
  EXPECT_EQ((*index.Find("pcpu_x"))[0].size, 0u);
}

TEST(IndexBugs, BugCase20_TheReachOfTheLastSymbolIsAnOption) {
  BuildOptions options;
  options.tail_bytes = 0x20;
  const SymbolIndex index = Index("ffffffff81000000 T last\n", options);
  EXPECT_THAT(At(index, 0xffffffff8100001f), ElementsAre("last+0x1f"));
  EXPECT_THAT(At(index, 0xffffffff81000020), IsEmpty());
}

TEST(IndexBugs, BugCase20_NothingIsBehindTheEndOfTheKernel) {
  const SymbolIndex index = Index(
      "ffffffff81000000 T _stext\n"
      "ffffffff82000000 B last_object\n"
      "ffffffff82100000 B _end\n");
  EXPECT_THAT(At(index, 0xffffffff820fffff),
              ElementsAre("last_object+0xfffff"));
  EXPECT_THAT(At(index, 0xffffffff82100000), ElementsAre("_end+0x0"));
  EXPECT_THAT(At(index, 0xffffffff82100001), IsEmpty());
}

TEST(IndexBugs, BugCase21_BothSidesOfEveryBorder) {
  BuildOptions options;
  options.borders = {0x1100};
  const SymbolIndex index = Index("1000 T s0\n1040 T s1\n10c0 T s2\n", options);
  EXPECT_THAT(At(index, 0xfff), IsEmpty());
  EXPECT_THAT(At(index, 0x1000), ElementsAre("s0+0x0"));
  EXPECT_THAT(At(index, 0x103f), ElementsAre("s0+0x3f"));
  EXPECT_THAT(At(index, 0x1040), ElementsAre("s1+0x0"));
  EXPECT_THAT(At(index, 0x10ff), ElementsAre("s2+0x3f"));
  EXPECT_THAT(At(index, 0x1100), IsEmpty());
  EXPECT_THAT(At(index, 0), IsEmpty());
  EXPECT_THAT(At(index, UINT64_MAX), IsEmpty());
}

TEST(IndexBugs, BugCase22_AliasesInAStableOrder) {
  const SymbolIndex index = Index(
      "ffffffff816b2340 t hash2_local\n"
      "ffffffff816b2340 W hash2\n"
      "ffffffff816b2340 T hash2_generic\n"
      "ffffffff816b2340 d hash2_data\n"
      "ffffffff816b2340 t hash2_lo\n"
      "ffffffff816b2360 t next\n");
  EXPECT_THAT(At(index, 0xffffffff816b2341),
              ElementsAre("hash2_generic+0x1", "hash2+0x1", "hash2_lo+0x1",
                          "hash2_local+0x1", "hash2_data+0x1"));
  const auto found = index.Symbolize(0xffffffff816b2341);
  for (const SymbolizedName& s : found->symbols) EXPECT_EQ(s.size, 0x20u);
}

TEST(IndexBugs, BugCase23_WhatProbesReportIsInTheFunction) {
  const SymbolIndex index =
      Index("ffffffff81000100 T a\nffffffff81000200 T b\n");
  EXPECT_THAT(At(index, 0xffffffff81000100), ElementsAre("a+0x0"));
  EXPECT_THAT(At(index, 0xffffffff81000101), ElementsAre("a+0x1"));
  EXPECT_THAT(At(index, 0xffffffff81000104), ElementsAre("a+0x4"));
  EXPECT_THAT(At(index, 0xffffffff81000200), ElementsAre("b+0x0"));
  EXPECT_THAT(At(index, 0xffffffff81000204), ElementsAre("b+0x4"));
}

TEST(IndexBugs, BugCase24_AddressZeroIsNoFunction) {
  const SymbolIndex index = Index(
      "0000000000000000 A fixed_percpu_data\n"
      "0000000000001000 A cpu_debug_store\n"
      "ffffffff81000000 T _stext\n");
  EXPECT_THAT(At(index, 0), IsEmpty());
  EXPECT_THAT(At(index, 1), ElementsAre("fixed_percpu_data+0x1"));
  EXPECT_EQ(index.FindAddress("fixed_percpu_data").state, LookupState::kFound);
}

TEST(IndexBugs, BugCase25_ALocalEntryIsInTheFunction) {
  BuildOptions options;
  options.borders = {0xc000000000a10080};
  const SymbolIndex index = Index("c000000000a10000 T f\n", options);
  EXPECT_THAT(At(index, 0xc000000000a10008), ElementsAre("f+0x8"));
  EXPECT_EQ(index.FindAddress("f").addr, 0xc000000000a10000);
}

TEST(IndexBugs, BugCase27_AKnownSizeIsTheBetterAnswer) {
  // The end of the core's stub is not known.
  const SymbolIndex index = Index(
      "ffffffffc0100000 t bpf_prog_cc33_x\t[bpf]\n"
      "ffffffffc0100080 t bpf_prog_dd44_y\t[bpf]\n"
      "ffffffffc0100000 t tail_stub\n");
  EXPECT_THAT(At(index, 0xffffffffc0100010),
              ElementsAre("bpf_prog_cc33_x+0x10", "tail_stub+0x10"));
  const SymbolIndex far = Index(
      "ffffffffc0000000 t tail_stub\n"
      "ffffffffc0100000 t bpf_prog_cc33_x\t[bpf]\n"
      "ffffffffc0100080 t bpf_prog_dd44_y\t[bpf]\n");
  EXPECT_THAT(At(far, 0xffffffffc0100010), ElementsAre("bpf_prog_cc33_x+0x10"));
}

constexpr std::string_view kTextA =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000100 T vfs_q\n"
    "ffffffffc0300000 t drv_alloc\t[drvx]\n"
    "ffffffffc0400000 t bpf_prog_1\t[bpf]\n";

// The end is the next symbol of all, not of those of one module.
TEST(IndexBugs, BugCase19_AnotherModulesSymbolEndsOne) {
  const SymbolIndex index = Index(
      "ffffffffc0800000 t read\t[big]\n"
      "ffffffffc0801000 t init\t[small]\n"
      "ffffffffc0801010 t exit\t[small]\n"
      "ffffffffc0900000 d __this_module\t[big]\n");
  EXPECT_THAT(At(index, 0xffffffffc0800fff), ElementsAre("read+0xfff"));
  EXPECT_THAT(At(index, 0xffffffffc0801000), ElementsAre("init+0x0"));
  EXPECT_THAT(At(index, 0xffffffffc0801011), ElementsAre("exit+0x1"));
  const auto read = index.Find("read");
  ASSERT_TRUE(read.ok() && read->size() == 1);
  EXPECT_EQ((*read)[0].size, 0x1000u);
}

TEST(IndexBugs, BugCase28_OnlyTheModulesPartIsReplaced) {
  const SymbolIndex a = Index(kTextA);
  const auto b = a.WithModulesFromText(
      "ffffffff81000000 T _stext\n"
      "ffffffff81000100 T vfs_q\n"
      "ffffffffc0300000 t drv_alloc\t[drvx]\n"
      "ffffffffc0500000 t bpf_prog_2\t[bpf]\n");
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(a.Stats().generation, 1u);
  EXPECT_EQ(b->Stats().generation, 2u);
  EXPECT_EQ(b->size(), 4u);
  EXPECT_TRUE(b->FindAddress("vfs_q").found());
  EXPECT_TRUE(b->FindAddress("drv_alloc").found());
  EXPECT_TRUE(b->FindAddress("bpf_prog_2").found());
  EXPECT_FALSE(b->FindAddress("bpf_prog_1").found());
  EXPECT_TRUE(a.FindAddress("bpf_prog_1").found());
  EXPECT_EQ(b->Verify(), absl::OkStatus());
}

TEST(IndexBugs, BugCase29_AddressesOfAModuleThatIsGone) {
  const SymbolIndex before = Index(kTextA);
  const auto after = before.WithModulesFromText(
      "ffffffff81000000 T _stext\n"
      "ffffffffc0300000 t other\t[otherx]\n");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_THAT(At(before, 0xffffffffc0300010), ElementsAre("drv_alloc+0x10"));
  EXPECT_THAT(At(*after, 0xffffffffc0300010), ElementsAre("other+0x10"));
}

TEST(IndexBugs, BugCase28_ModulesOfAKernelThatMovedAreRefused) {
  const auto moved = Index(kTextA).WithModulesFromText(
      "ffffffff82000000 T _stext\nffffffffc0300000 t m\t[m]\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(moved.status())) << moved.status();
}

TEST(IndexBugs, BugCase30_OneNameSeveralAddresses) {
  const auto found = Index(
                         "ffffffffc0400000 t q_start\t[m]\n"
                         "ffffffff81500000 t q_start\n"
                         "ffffffff81300000 t q_start\n")
                         .Find("q_start");
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 3u);
  EXPECT_EQ((*found)[0].addr, 0xffffffff81300000);
  EXPECT_EQ((*found)[1].addr, 0xffffffff81500000);
  EXPECT_EQ((*found)[2].addr, 0xffffffffc0400000);
  EXPECT_EQ((*found)[2].module, "m");
}

TEST(IndexBugs, BugCase79_AnyAddresses) {
  const SymbolIndex index = Index(
      "0000000000001000 A percpu\n"
      "ffff800000100000 t below\t[m]\n"
      "ffffffff81000000 T _stext\n"
      "ffffffffc0000000 t above\t[m]\n"
      "fffffffffffffff0 t top\t[m]\n"
      "c0123450 t short_form\n");
  for (const auto& [name, addr] :
       {std::pair<const char*, uint64_t>{"percpu", 0x1000},
        {"below", 0xffff800000100000},
        {"_stext", 0xffffffff81000000},
        {"above", 0xffffffffc0000000},
        {"top", 0xfffffffffffffff0},
        {"short_form", 0xc0123450}}) {
    EXPECT_EQ(index.FindAddress(name).addr, addr) << name;
    EXPECT_THAT(At(index, addr + 1), ElementsAre(std::string(name) + "+0x1"));
  }
  EXPECT_THAT(At(index, UINT64_MAX - 1), ElementsAre("top+0xe"));
}

TEST(IndexBugs, BugCase79_OverlappingModulesGiveSeveralAnswers) {
  const SymbolIndex index = Index(
      "ffffffffc0001000 t a0\t[a]\n"
      "ffffffffc0001040 t a1\t[a]\n"
      "ffffffffc0001080 t a2\t[a]\n"
      "ffffffffc0001000 t b0\t[b]\n"
      "ffffffffc0001060 t b1\t[b]\n"
      "ffffffffc0001100 t b2\t[b]\n");
  EXPECT_THAT(At(index, 0xffffffffc0001010), ElementsAre("a0+0x10", "b0+0x10"));
  // Nothing reaches over what begins behind it, whose ever that is.
  EXPECT_THAT(At(index, 0xffffffffc0001050), ElementsAre("a1+0x10"));
  EXPECT_THAT(At(index, 0xffffffffc0001070), ElementsAre("b1+0x10"));
  std::vector<uint64_t> addrs;
  EXPECT_TRUE(index
                  .ForEach([&](const IndexSymbolView& symbol) {
                    addrs.push_back(symbol.addr & 0xfff);
                    return true;
                  })
                  .ok());
  EXPECT_THAT(addrs, ElementsAre(0, 0, 0x40, 0x60, 0x80, 0x100));
}

}  // namespace
}  // namespace ksweep
