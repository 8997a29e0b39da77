// Indexes from System.map, ELF files and BTF.

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "ksweep/symbol_index.h"
#include "selftests/testing/btf_builder.h"
#include "selftests/testing/fake_kernel.h"

namespace ksweep {
namespace {

using testing::BtfBuilder;
using testing::BtfInElf;
using ::testing::HasSubstr;

// A vmlinux or a module with a text, a data and a bss section.
class KernelElf {
 public:
  explicit KernelElf(uint16_t type) : type_(type) {
    AddSection("", SHT_NULL, 0, 0, "");
  }

  // Its index.
  uint16_t AddSection(const std::string& name, uint32_t type, uint64_t flags,
                      uint64_t addr, const std::string& bytes,
                      uint64_t size = 0) {
    Elf64_Shdr header = {};
    header.sh_name = AddString(name);
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_addr = addr;
    header.sh_offset = sizeof(Elf64_Ehdr) + body_.size();
    header.sh_size = size == 0 ? bytes.size() : size;
    header.sh_addralign = 16;
    body_ += bytes;
    body_.resize((body_.size() + 15) & ~size_t{15});
    sections_.push_back(header);
    return static_cast<uint16_t>(sections_.size() - 1);
  }

  void AddSymbol(const std::string& name, unsigned char bind,
                 unsigned char type, uint16_t section, uint64_t value) {
    Elf64_Sym symbol = {};
    symbol.st_name = AddString(name);
    symbol.st_info = ELF64_ST_INFO(bind, type);
    symbol.st_shndx = section;
    symbol.st_value = value;
    symbols_.append(reinterpret_cast<const char*>(&symbol), sizeof(symbol));
  }

  std::string Build() {
    const uint16_t symtab = AddSection(".symtab", SHT_SYMTAB, 0, 0, symbols_);
    const uint32_t strtab_name = AddString(".strtab");
    const uint16_t strtab = AddSection("", SHT_STRTAB, 0, 0, strings_);
    sections_[strtab].sh_name = strtab_name;
    sections_[symtab].sh_entsize = sizeof(Elf64_Sym);
    sections_[symtab].sh_link = strtab;
    sections_[symtab].sh_addralign = 8;
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = type_;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_shoff = sizeof(header) + body_.size();
    header.e_ehsize = sizeof(header);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(sections_.size());
    header.e_shstrndx = strtab;
    std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
    file += body_;
    for (const Elf64_Shdr& section : sections_) {
      file.append(reinterpret_cast<const char*>(&section), sizeof(section));
    }
    return file;
  }

 private:
  uint32_t AddString(const std::string& text) {
    const size_t place = strings_.size();
    strings_ += text + '\0';
    return static_cast<uint32_t>(place);
  }

  uint16_t type_;
  std::vector<Elf64_Shdr> sections_;
  std::string body_;
  std::string strings_ = std::string(1, '\0');
  std::string symbols_ = std::string(sizeof(Elf64_Sym), '\0');
};

constexpr uint64_t kText = 0xffffffff81000000;
constexpr uint64_t kData = 0xffffffff82000000;

std::string Vmlinux(const std::string& btf) {
  KernelElf elf(ET_EXEC);
  const uint16_t text =
      elf.AddSection(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, kText,
                     std::string(0x200, '\0'));
  const uint16_t data =
      elf.AddSection(".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, kData,
                     std::string(0x40, '\0'));
  const uint16_t rodata = elf.AddSection(".rodata", SHT_PROGBITS, SHF_ALLOC,
                                         kData + 0x1000, std::string(64, '\0'));
  const uint16_t bss = elf.AddSection(".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE,
                                      kData + 0x2000, "", 0x100);
  const uint16_t debug =
      elf.AddSection(".debug_info", SHT_PROGBITS, 0, 0, "debug");
  std::string note;
  for (uint32_t word : {4u, 4u, 3u}) {
    note.append(reinterpret_cast<const char*>(&word), 4);
  }
  elf.AddSection(".notes", SHT_NOTE, SHF_ALLOC, kData + 0x1800,
                 note + std::string("GNU\0", 4) + "ABCD");
  if (!btf.empty()) {
    elf.AddSection(".BTF", SHT_PROGBITS, SHF_ALLOC, kData + 0x3000, btf);
  }
  elf.AddSymbol("file.c", STB_LOCAL, STT_FILE, SHN_ABS, 0);
  elf.AddSymbol("", STB_LOCAL, STT_SECTION, text, kText);
  elf.AddSymbol("_stext", STB_GLOBAL, STT_NOTYPE, text, kText);
  elf.AddSymbol("vfs_read", STB_GLOBAL, STT_FUNC, text, kText + 0x100);
  elf.AddSymbol("local", STB_LOCAL, STT_FUNC, text, kText + 0x180);
  elf.AddSymbol("weak", STB_WEAK, STT_FUNC, text, kText + 0x1c0);
  elf.AddSymbol("object", STB_GLOBAL, STT_OBJECT, data, kData);
  elf.AddSymbol("weak_object", STB_WEAK, STT_OBJECT, data, kData + 0x20);
  elf.AddSymbol("table", STB_LOCAL, STT_OBJECT, rodata, kData + 0x1000);
  elf.AddSymbol("zeros", STB_LOCAL, STT_OBJECT, bss, kData + 0x2000);
  elf.AddSymbol("fixed", STB_GLOBAL, STT_NOTYPE, SHN_ABS, 0x30);
  elf.AddSymbol("undefined", STB_GLOBAL, STT_NOTYPE, SHN_UNDEF, 0);
  elf.AddSymbol("debugging", STB_LOCAL, STT_NOTYPE, debug, 1);
  elf.AddSymbol("$x", STB_LOCAL, STT_NOTYPE, text, kText);
  return elf.Build();
}

class SourcesTest : public ::testing::Test {
 protected:
  std::string Write(std::string_view bytes) {
    folder_.WritePath("file.ko", bytes);
    return folder_.root() + "/file.ko";
  }
  absl::StatusOr<SymbolIndex> FromElf(std::string_view bytes,
                                      const BuildOptions& options = {}) {
    return SymbolIndex::FromElf(Write(bytes), options);
  }

  testing::FakeKernel folder_;
};

TEST_F(SourcesTest, Vmlinux) {
  const auto index = FromElf(Vmlinux(""));
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->Stats().build_id, "ABCD");
  EXPECT_FALSE(index->has_btf());
  struct Case {
    const char* name;
    uint64_t addr;
    char type;
    uint64_t size;
  };
  for (const Case& c : {Case{"_stext", kText, 'T', 0x100},
                        {"vfs_read", kText + 0x100, 'T', 0x80},
                        {"local", kText + 0x180, 't', 0x40},
                        // To the end of its section.
                        {"weak", kText + 0x1c0, 'W', 0x40},
                        {"object", kData, 'D', 0x20},
                        {"weak_object", kData + 0x20, 'V', 0x20},
                        {"table", kData + 0x1000, 'r', 0x40},
                        {"zeros", kData + 0x2000, 'b', 0x100},
                        {"fixed", 0x30, 'A', 0}}) {
    const auto found = index->Find(c.name);
    ASSERT_TRUE(found.ok() && found->size() == 1) << c.name;
    EXPECT_EQ((*found)[0].addr, c.addr) << c.name;
    EXPECT_EQ((*found)[0].type, c.type) << c.name;
    EXPECT_EQ((*found)[0].size, c.size) << c.name;
  }
  EXPECT_EQ(index->size(), 9u);
  EXPECT_TRUE(index->Symbolize(kText + 0x200)->symbols.empty());
  EXPECT_TRUE(index->Symbolize(kData + 0x40)->symbols.empty());
}

TEST_F(SourcesTest, BtfOfVmlinux) {
  BtfBuilder btf;
  const uint32_t proto = btf.Proto(0, {});
  const uint32_t vfs_read = btf.Func("vfs_read", proto);
  const uint32_t absent = btf.Func("inlined_everywhere", proto);
  const auto index = FromElf(Vmlinux(btf.Build()));
  ASSERT_TRUE(index.ok()) << index.status();
  ASSERT_TRUE(index->has_btf());
  const auto found = index->FindBtf(vfs_read);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].name, "vfs_read");
  EXPECT_EQ((*found)[0].addr, kText + 0x100);
  for (uint32_t id : {0u, proto, absent, absent + 1, UINT32_MAX}) {
    EXPECT_TRUE(index->FindBtf(id)->empty()) << id;
  }
  // It goes with the file.
  const std::string path = folder_.root() + "/index";
  ASSERT_TRUE(index->Save(path).ok());
  OpenOptions as_built;
  as_built.relocation = Relocation::kAsBuilt;
  EXPECT_EQ(SymbolIndex::Open(path, as_built)->FindBtf(vfs_read)->size(), 1u);
}

TEST_F(SourcesTest, BtfOfSeveralFunctionsOfOneName) {
  BtfBuilder btf;
  const uint32_t id = btf.Func("q_start", btf.Proto(0, {}));
  const auto index = SymbolIndex::FromText(
      "ffffffff81300000 t q_start\n"
      "ffffffff81500000 t q_start\n"
      "ffffffff82500000 d q_start\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(index->FindBtf(id).status()));
  const auto with = index->WithBtf(btf.Build());
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->FindBtf(id)->size(), 2u);
  EXPECT_FALSE(index->has_btf());
  EXPECT_TRUE(absl::IsInvalidArgument(index->WithBtf("no BTF").status()));
}

TEST_F(SourcesTest, AModuleOnDisk) {
  KernelElf elf(ET_REL);
  const uint16_t text =
      elf.AddSection(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0,
                     std::string(0x88, '\0'));
  elf.AddSection(".modinfo", SHT_PROGBITS, SHF_ALLOC, 0,
                 std::string("license=GPL\0name=drvx\0", 22));
  const uint16_t data = elf.AddSection(
      ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0, std::string(16, '\0'));
  elf.AddSymbol("drv_init", STB_LOCAL, STT_FUNC, text, 0);
  elf.AddSymbol("drv_exit", STB_LOCAL, STT_FUNC, text, 0x40);
  elf.AddSymbol("drv_ops", STB_GLOBAL, STT_OBJECT, data, 8);
  const auto index = FromElf(elf.Build());
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->Stats().core.symbols, 0u);
  EXPECT_EQ(index->Stats().modules.symbols, 3u);
  const auto exit = index->Find("drv_exit");
  ASSERT_EQ(exit->size(), 1u);
  EXPECT_EQ((*exit)[0].module, "drvx");
  EXPECT_EQ((*exit)[0].size, 0x48u);
  // .modinfo is behind the text, at a multiple of 16.
  EXPECT_EQ(index->FindAddress("drv_ops").addr, 0xb0u + 8);
}

TEST_F(SourcesTest, BtfOfAModuleOnDisk) {
  BtfBuilder core;
  const uint32_t proto = core.Proto(0, {});
  BtfBuilder own = BtfBuilder::SplitOf(core);
  const uint32_t id = own.Func("drv_init", proto);
  const std::string good = own.Build();
  const struct {
    const char* what;
    std::string btf;   // empty: the module has none
    std::string base;  // of the options
    bool base_section;
    absl::StatusCode code;
    const char* message;
  } kCases[] = {
      {"all", good, core.Build(), false, absl::StatusCode::kOk, ""},
      {"ELF", good, BtfInElf(core.Build()), false, absl::StatusCode::kOk, ""},
      {"none", "", core.Build(), false, absl::StatusCode::kFailedPrecondition,
       "no BTF ids of module 'drvx'"},
      {"no base", good, "", false, absl::StatusCode::kFailedPrecondition,
       "not given"},
      {"cut off", good.substr(0, 40), core.Build(), false,
       absl::StatusCode::kInvalidArgument, ""},
      {"its own base", good, core.Build(), true,
       absl::StatusCode::kFailedPrecondition, ".BTF.base"},
  };
  for (const auto& c : kCases) {
    KernelElf elf(ET_REL);
    const uint16_t text =
        elf.AddSection(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0,
                       std::string(0x80, '\0'));
    elf.AddSection(".modinfo", SHT_PROGBITS, SHF_ALLOC, 0,
                   std::string("name=drvx\0", 10));
    if (!c.btf.empty()) elf.AddSection(".BTF", SHT_PROGBITS, 0, 0, c.btf);
    if (c.base_section) elf.AddSection(".BTF.base", SHT_PROGBITS, 0, 0, "x");
    elf.AddSymbol("drv_init", STB_LOCAL, STT_FUNC, text, 0x40);
    BuildOptions options;
    options.btf = c.base;
    const auto index = FromElf(elf.Build(), options);
    ASSERT_TRUE(index.ok()) << c.what << ": " << index.status();
    EXPECT_EQ(index->Find("drv_init")->size(), 1u) << c.what;
    const auto found = index->FindBtf("drvx", id);
    EXPECT_EQ(found.status().code(), c.code) << c.what << found.status();
    EXPECT_THAT(std::string(found.status().message()), HasSubstr(c.message));
    if (c.code != absl::StatusCode::kOk) continue;
    ASSERT_EQ(found->size(), 1u) << c.what;
    EXPECT_EQ((*found)[0].addr, 0x40u) << c.what;
    EXPECT_FALSE(index->has_btf()) << c.what;
  }
}

TEST_F(SourcesTest, BtfOfTheOptions) {
  BtfBuilder btf;
  const uint32_t id = btf.Func("q_start", btf.Proto(0, {}));
  BuildOptions options;
  options.btf = btf.Build();
  const auto index =
      SymbolIndex::FromText("ffffffff81300000 t q_start\n", options);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->FindBtf(id)->size(), 1u);
  options.btf = "no BTF";
  EXPECT_TRUE(absl::IsInvalidArgument(
      SymbolIndex::FromText("ffffffff81300000 t q_start\n", options).status()));
}

TEST_F(SourcesTest, WhatIsNoElfFile) {
  EXPECT_TRUE(absl::IsInvalidArgument(FromElf("text").status()));
  const std::string good = Vmlinux("");
  // Cut off anywhere, it is refused or lacks something, no more.
  for (size_t size = 1; size < good.size(); size += 13) {
    const auto index = FromElf(good.substr(0, size));
    EXPECT_TRUE(index.ok() || !index.status().message().empty());
  }
  EXPECT_TRUE(
      absl::IsNotFound(FromElf(BtfInElf(BtfBuilder().Build())).status()) ||
      FromElf(BtfInElf(BtfBuilder().Build())).ok());
  EXPECT_TRUE(absl::IsNotFound(
      SymbolIndex::FromElf(folder_.root() + "/none").status()));
}

TEST_F(SourcesTest, SystemMap) {
  const auto index =
      SymbolIndex::FromSystemMap(Write("0000000000021000 A pcpu_x\n"
                                       "ffffffff81000000 T _stext\n"
                                       "ffffffff8120a000 T vfs_q\n"));
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->FindAddress("vfs_q").addr, 0xffffffff8120a000);
  EXPECT_EQ(index->Stats().stext, 0xffffffff81000000);
}

TEST_F(SourcesTest, APlaceholderIsNoSystemMap) {
  const auto index = SymbolIndex::FromSystemMap(
      Write("ffffffffffffffff B The real System.map is in the "
            "linux-image-6.12.95-cloud-amd64-dbg package\n"));
  EXPECT_TRUE(absl::IsFailedPrecondition(index.status())) << index.status();
  EXPECT_THAT(std::string(index.status().message()),
              HasSubstr("package linux-image-6.12.95-cloud-amd64-dbg"));
}

TEST_F(SourcesTest, MalformedLinesAreNamed) {
  const auto index = SymbolIndex::FromSystemMap(
      Write("ffffffff81000000 T _stext\nno line of it\n"));
  EXPECT_TRUE(absl::IsInvalidArgument(index.status())) << index.status();
  EXPECT_THAT(std::string(index.status().message()), HasSubstr("line 2"));
}

}  // namespace
}  // namespace ksweep
