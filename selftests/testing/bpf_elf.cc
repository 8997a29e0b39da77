#include "selftests/testing/bpf_elf.h"

#include <elf.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

namespace ksweep {
namespace {

// r0 = 0; exit
constexpr unsigned char kReturnZero[] = {
    0xb7, 0, 0, 0, 0, 0, 0, 0,  //
    0x95, 0, 0, 0, 0, 0, 0, 0,
};

template <typename T>
std::string Bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// File header, then the sections' bytes, then the section headers.
class ElfWriter {
 public:
  ElfWriter() { sections_.push_back({}); }  // index 0 is none

  // Returns its index.
  uint16_t AddSection(const std::string& name, uint32_t type, uint64_t flags,
                      const std::string& bytes) {
    body_.resize((body_.size() + 7) & ~size_t{7});
    Elf64_Shdr header = {};
    header.sh_name = AddString(name);
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_offset = sizeof(Elf64_Ehdr) + body_.size();
    header.sh_size = bytes.size();
    header.sh_addralign = 8;
    body_ += bytes;
    sections_.push_back(header);
    return static_cast<uint16_t>(sections_.size() - 1);
  }

  void AddFunction(const std::string& name, uint16_t section, uint64_t size) {
    Elf64_Sym symbol = {};
    symbol.st_name = AddString(name);
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = section;
    symbol.st_size = size;
    symbols_ += Bytes(symbol);
  }

  std::string Finish() && {
    const uint16_t symtab = AddSection(".symtab", SHT_SYMTAB, 0, symbols_);
    const uint32_t strtab_name = AddString(".strtab");
    const uint16_t strtab = AddSection("", SHT_STRTAB, 0, strings_);
    sections_[strtab].sh_name = strtab_name;
    sections_[symtab].sh_entsize = sizeof(Elf64_Sym);
    sections_[symtab].sh_link = strtab;
    sections_[symtab].sh_info = 1;  // the first global
    body_.resize((body_.size() + 7) & ~size_t{7});

    std::string file = Bytes(Header(strtab)) + body_;
    for (const Elf64_Shdr& section : sections_) file += Bytes(section);
    return file;
  }

 private:
  uint32_t AddString(const std::string& text) {
    const size_t place = strings_.size();
    strings_ += text;
    strings_ += '\0';
    return static_cast<uint32_t>(place);
  }

  Elf64_Ehdr Header(uint16_t strtab) const {
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] =
        std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_REL;
    header.e_machine = EM_BPF;
    header.e_version = EV_CURRENT;
    header.e_shoff = sizeof(header) + body_.size();
    header.e_ehsize = sizeof(header);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(sections_.size());
    header.e_shstrndx = strtab;
    return header;
  }

  std::vector<Elf64_Shdr> sections_;
  std::string body_;
  std::string strings_ = std::string(1, '\0');
  std::string symbols_ = Bytes(Elf64_Sym{});
};

}  // namespace

std::string BuildBpfElf(const std::vector<BpfElfProgram>& programs) {
  const std::string code(reinterpret_cast<const char*>(kReturnZero),
                         sizeof(kReturnZero));
  ElfWriter writer;
  for (const BpfElfProgram& program : programs) {
    const uint16_t section = writer.AddSection(program.section, SHT_PROGBITS,
                                               SHF_ALLOC | SHF_EXECINSTR, code);
    writer.AddFunction(program.name, section, code.size());
  }
  writer.AddSection("license", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE,
                    std::string("GPL") + '\0');
  return std::move(writer).Finish();
}

std::string BuildElf(const std::vector<ElfSection>& sections) {
  ElfWriter writer;
  for (const ElfSection& section : sections) {
    writer.AddSection(section.name, SHT_PROGBITS, 0, section.bytes);
  }
  return std::move(writer).Finish();
}

}  // namespace ksweep
