// The kernel's table as re-implemented in selftests/bench/reference: exact on
// the dumps, and as large as the real one.

#include "selftests/bench/reference/kernel_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "selftests/bench/reference/btf_addrs.h"
#include "selftests/bench/reference/core_symbols.h"
#include "selftests/bench/reference/name_table.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep::bench {
namespace {

using Symbols = std::vector<CoreSymbol>;

// One kernel's symbols; compressed once for all tests.
struct Dump {
  std::string name;
  testing::FakeKernel kernel;
  Symbols symbols;
  std::unique_ptr<CompressedNames> names;

  std::unique_ptr<KernelNameTable> Make(KernelForm form) const {
    return MakeKernelTable(form, symbols, *names);
  }
};

const Dump& DumpOf(const std::string& name) {
  static auto& dumps = *new std::map<std::string, std::unique_ptr<Dump>>;
  std::unique_ptr<Dump>& dump = dumps[name];
  if (dump == nullptr) {
    dump = std::make_unique<Dump>();
    dump->name = name;
    dump->kernel.Write(KernelFile::kKallsyms,
                       testing::Gunzip(testing::DataFolder() + "/" + name +
                                       "/proc/kallsyms.gz"));
    dump->symbols = ReadCoreSymbols(dump->kernel.Path(KernelFile::kKallsyms));
    dump->names = std::make_unique<CompressedNames>(dump->symbols);
  }
  return *dump;
}

constexpr const char* kDumps[] = {"linux-6.1.0", "linux-6.12.95",
                                  "linux-7.3.4"};

constexpr KernelForm With(KernelNames names, KernelSeqs seqs) {
  return {names, seqs, KernelCompare::kOnTheFly};
}

// The parts of the image of Debian's 7.3.4 are this large, and the kernel's own
// build makes these totals of the other dumps.
TEST(KernelTable, SizesAreThoseOfTheKernel) {
  const KernelBytes bytes = DumpOf("linux-7.3.4").Make(kKernel256)->bytes();
  EXPECT_EQ(bytes.names, 3'215'387u);
  EXPECT_EQ(bytes.markers, 3'088u);
  EXPECT_EQ(bytes.tokens, 1'624u);
  EXPECT_EQ(bytes.offsets, 790'212u);
  EXPECT_EQ(bytes.seqs, 592'659u);
  EXPECT_EQ(bytes.total(), 4'602'970u);
  EXPECT_EQ(DumpOf("linux-7.3.4").Make(kKernel16)->bytes().markers, 49'392u);
  EXPECT_EQ(DumpOf("linux-7.3.4").Make(kKernel16)->bytes().total(), 4'649'274u);
  EXPECT_EQ(DumpOf("linux-6.12.95").Make(kKernel256)->bytes().total(),
            3'212'587u);
  EXPECT_EQ(DumpOf("linux-6.1.0").Make(kKernel256)->bytes().total(),
            1'741'717u);
}

// How the bytes of 16:1 markers can be saved.
TEST(KernelTable, FootprintOfVariants) {
  struct Case {
    KernelForm form;
    int64_t more;  // than 256:1
  };
  const Case kCases[] = {
      {kKernel16, 46'304},                                        // 45.2 KiB
      {With(KernelNames::kTwoLevel, KernelSeqs::kWord), 24'696},  // 24.1 KiB
      {With(KernelNames::kEvery256, KernelSeqs::kPacked),
       -148'164},  // -144.7 KiB
      {With(KernelNames::kSummed, KernelSeqs::kPacked),
       -114'208},  // -111.5 KiB
  };
  const Dump& dump = DumpOf("linux-7.3.4");
  const auto baseline =
      static_cast<int64_t>(dump.Make(kKernel256)->bytes().total());
  for (const Case& c : kCases) {
    EXPECT_EQ(
        static_cast<int64_t>(dump.Make(c.form)->bytes().total()) - baseline,
        c.more);
  }
}

// The first symbol of each name.
std::map<std::string_view, uint64_t> FirstAddrs(const Symbols& symbols) {
  std::map<std::string_view, uint64_t> addrs;
  for (const CoreSymbol& symbol : symbols) {
    addrs.emplace(symbol.name, symbol.addr);
  }
  return addrs;
}

// Every name, or every `step`th of them, with the first symbol that has it.
void ExpectFindsNames(const NameTable& table, const Symbols& symbols,
                      size_t step = 1) {
  std::vector<std::string_view> names;
  std::vector<uint64_t> wanted;
  size_t at = 0;
  for (const auto& [name, addr] : FirstAddrs(symbols)) {
    if (at++ % step != 0) continue;
    names.push_back(name);
    wanted.push_back(addr);
  }
  std::vector<uint64_t> found(names.size());
  table.Find(names, found.data());
  EXPECT_EQ(found, wanted);
}

// Names that begin or end like one of the table, and the ends of the order.
void ExpectFindsNoOther(const NameTable& table, const Symbols& symbols,
                        size_t step = 1) {
  const auto present = FirstAddrs(symbols);
  std::vector<std::string> absent = {"", " ", "~~~~", "\xff"};
  size_t at = 0;
  for (const auto& [name, addr] : present) {
    if (at++ % step != 0) continue;
    for (std::string_view other :
         {name.substr(1), name.substr(0, name.size() - 1)}) {
      absent.emplace_back(other);
    }
    absent.push_back(std::string(name) + "0");
    absent.back().back() = '~';
  }
  std::erase_if(absent, [&present](const std::string& name) {
    return present.count(name) != 0;
  });
  const std::vector<std::string_view> names(absent.begin(), absent.end());
  std::vector<uint64_t> found(names.size());
  table.Find(names, found.data());
  EXPECT_EQ(found, std::vector<uint64_t>(names.size(), kNoAddr));
}

TEST(KernelTable, FindsEveryNameAndNoOther) {
  for (const char* name : kDumps) {
    const Dump& dump = DumpOf(name);
    for (const auto& [label, form] : kKernelForms) {
      SCOPED_TRACE(std::string(name) + " " + label);
      const auto table = dump.Make(form);
      // With a marker for 256 names, all of them would take half a minute.
      const bool slow = form.names == KernelNames::kEvery256;
      ExpectFindsNames(*table, dump.symbols, slow ? 97 : 1);
      ExpectFindsNoOther(*table, dump.symbols, slow ? 194 : 9);
    }
  }
}

TEST(KernelTable, EverySymbolComesBackInOrder) {
  for (const char* name : kDumps) {
    const Dump& dump = DumpOf(name);
    for (const auto& [label, form] : kKernelForms) {
      SCOPED_TRACE(std::string(name) + " " + label);
      size_t pos = 0;
      size_t different = 0;
      dump.Make(form)->ForEach(
          [&](uint64_t addr, char type, std::string_view symbol) {
            const CoreSymbol& wanted = dump.symbols.at(pos++);
            different += addr != wanted.addr || type != wanted.type ||
                         symbol != wanted.name;
          });
      EXPECT_EQ(pos, dump.symbols.size());
      EXPECT_EQ(different, 0u);
    }
  }
}

// Every start, and the byte before it.
void ExpectSymbolizes(const KernelNameTable& table, const Symbols& symbols) {
  std::vector<uint64_t> addrs;
  std::vector<Place> wanted;
  for (size_t i = 0, first = 0; i < symbols.size(); ++i) {
    if (symbols[i].addr != symbols[first].addr) {
      addrs.push_back(symbols[i].addr - 1);
      const uint64_t size = symbols[i].addr - symbols[first].addr;
      wanted.push_back({symbols[first].name, size - 1, size});
      first = i;
    }
  }
  addrs.push_back(symbols.back().addr);
  const auto last = std::find_if(
      symbols.begin(), symbols.end(),
      [&](const CoreSymbol& s) { return s.addr == symbols.back().addr; });
  wanted.push_back({last->name, 0, 0});
  size_t at = 0;
  size_t different = 0;
  table.Symbolize(addrs, [&](const Place& place) {
    const Place& want = wanted.at(at++);
    different += place.name != want.name || place.offset != want.offset ||
                 place.size != want.size;
  });
  EXPECT_EQ(at, addrs.size());
  EXPECT_EQ(different, 0u);
}

TEST(KernelTable, SymbolizesBordersOfEverySymbol) {
  for (const char* name : kDumps) {
    const Dump& dump = DumpOf(name);
    for (const auto& [label, form] : kKernelForms) {
      SCOPED_TRACE(std::string(name) + " " + label);
      ExpectSymbolizes(*dump.Make(form), dump.symbols);
    }
  }
}

TEST(KernelTable, TreeAndLinearScanFindTheSame) {
  const Dump& dump = DumpOf("linux-6.1.0");
  const auto tree = MakeTreeTable(dump.symbols);
  ExpectFindsNames(*tree, dump.symbols);
  ExpectFindsNoOther(*tree, dump.symbols);
  const auto linear = MakeLinearTable(dump.symbols, *dump.names);
  const Symbols few(dump.symbols.begin(), dump.symbols.begin() + 300);
  ExpectFindsNames(*linear, few);
  const std::string_view absent = "no_such_symbol";
  uint64_t addr = 0;
  linear->Find({&absent, 1}, &addr);
  EXPECT_EQ(addr, kNoAddr);
}

TEST(KernelTable, AddressesBesideBtf) {
  const Dump& dump = DumpOf("linux-7.3.4");
  const auto names = dump.Make(kKernel16);
  const BtfAddrs addrs(
      testing::Gunzip(testing::DataFolder() +
                      "/linux-7.3.4/sys/kernel/btf/vmlinux.gz"),
      *names);
  EXPECT_GT(addrs.funcs().size(), 40'000u);
  EXPECT_EQ(addrs.bytes(), 8 * addrs.funcs().size());
  size_t known = 0;
  for (uint32_t id : addrs.funcs()) known += addrs.Get(id) != kNoAddr;
  EXPECT_GT(known, addrs.funcs().size() * 9 / 10);
  EXPECT_EQ(addrs.Get(0), kNoAddr);
  EXPECT_EQ(addrs.Get(~uint32_t{0}), kNoAddr);
}

// Small tables, whose compression can be followed by hand.
PackedNames PackText(const std::vector<std::string>& texts) {
  PackedNames packed;
  for (const std::string& text : texts) {
    packed.begins.push_back(static_cast<uint32_t>(packed.bytes.size()));
    packed.lens.push_back(static_cast<uint16_t>(text.size()));
    packed.bytes.insert(packed.bytes.end(), text.begin(), text.end());
  }
  return packed;
}

std::vector<uint8_t> BytesOf(const PackedNames& names, size_t i) {
  return {names.Get(i).begin(), names.Get(i).end()};
}

TEST(PairTokens, MostFrequentPairFirst) {
  PackedNames names = PackText({"abab", "aba", "cc"});
  const Tokens tokens = Compress(&names);
  EXPECT_EQ(tokens[255], "ab");
  // After that each pair occurs once. The lowest has the lowest second byte.
  EXPECT_EQ(tokens[254], "aba");
  EXPECT_EQ(BytesOf(names, 1), (std::vector<uint8_t>{254}));
  EXPECT_EQ(tokens['a'], "a");
  EXPECT_EQ(tokens['d'], "");
}

TEST(PairTokens, OverlappingPairsFromTheLeft) {
  PackedNames names = PackText({"aaaaa"});
  const Tokens tokens = Compress(&names);
  EXPECT_EQ(tokens[255], "aa");
  EXPECT_EQ(tokens[254], "aaa");
  EXPECT_EQ(tokens[253], "aaaaa");
}

TEST(PairTokens, NothingToCompress) {
  PackedNames none;
  EXPECT_EQ(Compress(&none)['a'], "");
  PackedNames single = PackText({"a", ""});
  EXPECT_EQ(Compress(&single)['a'], "a");
  EXPECT_EQ(BytesOf(single, 0), (std::vector<uint8_t>{'a'}));
}

// A name of more than 127 tokens has a length of two bytes.
TEST(KernelTable, LongNames) {
  std::string varied;
  for (int i = 0; i < 250; ++i) varied += static_cast<char>(1 + i);
  const Symbols symbols = {{0xffffffff81000000, 'T', "first"},
                           {0xffffffff81000010, 't', varied},
                           {0xffffffff81000020, 'D', "last"}};
  const CompressedNames names(symbols);
  for (const auto& [label, form] : kKernelForms) {
    SCOPED_TRACE(label);
    const auto table = MakeKernelTable(form, symbols, names);
    ExpectFindsNames(*table, symbols);
    ExpectSymbolizes(*table, symbols);
  }
}

// Symbols at small addresses beside those of the kernel: up to Linux v6.14
// per-CPU symbols had them.
TEST(KernelTable, AbsoluteAddresses) {
  const Symbols symbols = {{0, 'A', "fixed_percpu_data"},
                           {0x1000, 'A', "cpu_debug_store"},
                           {0xffffffff81000000, 'T', "_stext"},
                           {0xffffffff81000000, 't', "start"},
                           {0xffffffffb1000000, 'T', "far"}};
  const CompressedNames names(symbols);
  const auto table = MakeKernelTable(kKernel16, symbols, names);
  ExpectFindsNames(*table, symbols);
  ExpectSymbolizes(*table, symbols);
}

}  // namespace
}  // namespace ksweep::bench
