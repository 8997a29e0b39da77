#include "lib/source/elf_symbols.h"

#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/str_format.h"
#include "lib/source/btf_elf.h"

namespace ksweep {
namespace {

struct ElfEnd {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfPtr = std::unique_ptr<Elf, ElfEnd>;

absl::Status Damaged() {
  const char* const what = elf_errmsg(-1);
  return absl::InvalidArgumentError(absl::StrFormat(
      "damaged ELF file: %s", what == nullptr ? "unknown" : what));
}

struct Section {
  Elf_Scn* scn = nullptr;
  GElf_Shdr header = {};
  uint64_t start = 0;  // in memory

  bool loaded() const { return header.sh_flags & SHF_ALLOC; }
};

char Upper(char type) { return static_cast<char>(type - ('a' - 'A')); }

// As nm(1) does; '\0' for symbols that are not in memory.
char TypeOf(const GElf_Sym& symbol, const Section* section) {
  const unsigned char bind = GELF_ST_BIND(symbol.st_info);
  if (bind == STB_WEAK) {
    return GELF_ST_TYPE(symbol.st_info) == STT_OBJECT ? 'V' : 'W';
  }
  char type = 'r';
  if (section == nullptr) {
    type = 'a';
  } else if (section->header.sh_flags & SHF_EXECINSTR) {
    type = 't';
  } else if (section->header.sh_type == SHT_NOBITS) {
    type = 'b';
  } else if (section->header.sh_flags & SHF_WRITE) {
    type = 'd';
  }
  return bind == STB_LOCAL ? type : Upper(type);
}

class Reader {
 public:
  explicit Reader(Elf* elf) : elf_(elf) {}

  absl::Status ReadSections();
  absl::Status ReadSymbols(
      absl::FunctionRef<absl::Status(const Symbol&)> visit);
  ElfFacts TakeFacts() { return std::move(facts_); }

 private:
  absl::Status AddSection(Elf_Scn* scn);
  void ReadNotes(Elf_Data* data);
  void ReadModuleInfo(std::string_view info);
  // Null for absolute symbols; nothing for one that is not in memory.
  std::optional<const Section*> SectionOf(const GElf_Sym& symbol,
                                          int index) const;
  absl::Status Visit(const GElf_Sym& symbol, int index,
                     absl::FunctionRef<absl::Status(const Symbol&)> visit);

  Elf* const elf_;
  size_t names_ = 0;
  bool relocatable_ = false;
  uint64_t next_start_ = 0;
  std::vector<Section> sections_;  // by index
  std::optional<size_t> symtab_;
  Elf_Data* long_indices_ = nullptr;
  ElfFacts facts_;
};

void Reader::ReadNotes(Elf_Data* data) {
  GElf_Nhdr note;
  size_t at = 0, name, desc;
  while (data != nullptr &&
         (at = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
    const char* const bytes = static_cast<const char*>(data->d_buf);
    const std::string_view owner(bytes + name, note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && owner == std::string_view("GNU", 4)) {
      facts_.build_id.assign(bytes + desc, note.n_descsz);
    }
  }
}

// Texts such as "name=xfs", with a zero byte behind each.
void Reader::ReadModuleInfo(std::string_view info) {
  constexpr std::string_view kName = "name=";
  while (!info.empty()) {
    const std::string_view text = info.substr(0, info.find('\0'));
    if (text.substr(0, kName.size()) == kName) {
      facts_.module = std::string(text.substr(kName.size()));
    }
    info.remove_prefix(std::min(text.size() + 1, info.size()));
  }
}

absl::Status Reader::AddSection(Elf_Scn* scn) {
  Section section;
  section.scn = scn;
  if (gelf_getshdr(scn, &section.header) == nullptr) return Damaged();
  const GElf_Shdr& header = section.header;
  section.start = header.sh_addr;
  if (relocatable_ && section.loaded()) {
    const uint64_t align = std::max<uint64_t>(header.sh_addralign, 1);
    next_start_ = (next_start_ + align - 1) / align * align;
    section.start = next_start_;
    next_start_ += header.sh_size;
  }
  if (section.loaded() && header.sh_size > 0 && !(header.sh_flags & SHF_TLS)) {
    facts_.borders.push_back(section.start);
    facts_.borders.push_back(section.start + header.sh_size);
  }
  if (header.sh_type == SHT_SYMTAB) symtab_ = sections_.size();
  if (header.sh_type == SHT_SYMTAB_SHNDX) {
    long_indices_ = elf_getdata(scn, nullptr);
  }
  if (header.sh_type == SHT_NOTE) ReadNotes(elf_getdata(scn, nullptr));
  const char* const name = elf_strptr(elf_, names_, header.sh_name);
  if (name != nullptr && std::string_view(name) == ".modinfo") {
    const Elf_Data* const data = elf_getdata(scn, nullptr);
    if (data != nullptr && data->d_buf != nullptr) {
      ReadModuleInfo({static_cast<const char*>(data->d_buf), data->d_size});
    }
  }
  sections_.push_back(section);
  return absl::OkStatus();
}

absl::Status Reader::ReadSections() {
  GElf_Ehdr header;
  if (gelf_getehdr(elf_, &header) == nullptr) return Damaged();
  if (elf_getshdrstrndx(elf_, &names_) != 0) return Damaged();
  relocatable_ = header.e_type == ET_REL;
  facts_.is_module = relocatable_;
  sections_.push_back({});  // index 0 is none
  Elf_Scn* scn = nullptr;
  while ((scn = elf_nextscn(elf_, scn)) != nullptr) {
    absl::Status status = AddSection(scn);
    if (!status.ok()) return status;
  }
  if (!symtab_.has_value()) {
    return absl::NotFoundError(
        "the ELF file has no symbol table; it was stripped");
  }
  return absl::OkStatus();
}

std::optional<const Section*> Reader::SectionOf(const GElf_Sym& symbol,
                                                int index) const {
  size_t number = symbol.st_shndx;
  if (number == SHN_ABS) return nullptr;
  if (number == SHN_XINDEX && long_indices_ != nullptr) {
    GElf_Sym unused;
    Elf32_Word wide;
    Elf_Data* const symbols = elf_getdata(sections_[*symtab_].scn, nullptr);
    if (gelf_getsymshndx(symbols, long_indices_, index, &unused, &wide) ==
        nullptr) {
      return std::nullopt;
    }
    number = wide;
  } else if (number >= SHN_LORESERVE) {
    return std::nullopt;
  }
  if (number == SHN_UNDEF || number >= sections_.size() ||
      !sections_[number].loaded()) {
    return std::nullopt;
  }
  return &sections_[number];
}

absl::Status Reader::Visit(
    const GElf_Sym& symbol, int index,
    absl::FunctionRef<absl::Status(const Symbol&)> visit) {
  const unsigned char type = GELF_ST_TYPE(symbol.st_info);
  if (type == STT_SECTION || type == STT_FILE || type == STT_TLS) {
    return absl::OkStatus();
  }
  const std::optional<const Section*> section = SectionOf(symbol, index);
  if (!section.has_value()) return absl::OkStatus();
  const char* const name =
      elf_strptr(elf_, sections_[*symtab_].header.sh_link, symbol.st_name);
  if (name == nullptr) return Damaged();
  if (name[0] == '\0') return absl::OkStatus();
  Symbol found;
  found.addr = symbol.st_value;
  if (relocatable_ && *section != nullptr) found.addr += (*section)->start;
  found.type = TypeOf(symbol, *section);
  found.name = name;
  return visit(found);
}

absl::Status Reader::ReadSymbols(
    absl::FunctionRef<absl::Status(const Symbol&)> visit) {
  Elf_Data* const data = elf_getdata(sections_[*symtab_].scn, nullptr);
  if (data == nullptr) return Damaged();
  GElf_Sym symbol;
  for (int i = 1; gelf_getsym(data, i, &symbol) != nullptr; ++i) {
    absl::Status status = Visit(symbol, i, visit);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ElfFacts> ReadElfSymbols(
    std::string_view bytes,
    absl::FunctionRef<absl::Status(const Symbol&)> visit) {
  if (!IsElf(bytes)) return absl::InvalidArgumentError("not an ELF file");
  elf_version(EV_CURRENT);
  // Not const in libelf, which does not write to it for reading.
  const ElfPtr elf(elf_memory(const_cast<char*>(bytes.data()), bytes.size()));
  if (elf == nullptr) return Damaged();
  Reader reader(elf.get());
  absl::Status status = reader.ReadSections();
  if (status.ok()) status = reader.ReadSymbols(visit);
  if (!status.ok()) return status;
  return reader.TakeFacts();
}

}  // namespace ksweep
