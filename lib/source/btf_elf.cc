#include "lib/source/btf_elf.h"

#include <gelf.h>
#include <libelf.h>

#include <memory>
#include <optional>

#include "absl/strings/str_format.h"

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

// The section's bytes within `file`; nothing if they are not all there.
std::optional<std::string_view> BytesOf(const GElf_Shdr& header,
                                        std::string_view file) {
  if (header.sh_type == SHT_NOBITS || header.sh_offset > file.size() ||
      header.sh_size > file.size() - header.sh_offset ||
      (header.sh_flags & SHF_COMPRESSED) != 0) {
    return std::nullopt;
  }
  return file.substr(header.sh_offset, header.sh_size);
}

struct Sections {
  std::optional<GElf_Shdr> btf;
  bool has_base = false;
};

absl::StatusOr<Sections> FindSections(Elf* elf) {
  size_t names;
  if (elf_getshdrstrndx(elf, &names) != 0) return Damaged();
  Sections sections;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) return Damaged();
    const char* const text = elf_strptr(elf, names, header.sh_name);
    const std::string_view name = text == nullptr ? "" : text;
    if (name == ".BTF") sections.btf = header;
    sections.has_base |= name == ".BTF.base";
  }
  return sections;
}

}  // namespace

bool IsElf(std::string_view bytes) {
  return bytes.substr(0, SELFMAG) == std::string_view(ELFMAG, SELFMAG);
}

absl::StatusOr<std::string> BtfOfElf(std::string_view bytes) {
  elf_version(EV_CURRENT);
  // Not const in libelf, which does not write to it for reading.
  const ElfPtr elf(elf_memory(const_cast<char*>(bytes.data()), bytes.size()));
  if (elf == nullptr) return Damaged();
  absl::StatusOr<Sections> sections = FindSections(elf.get());
  if (!sections.ok()) return sections.status();
  if (!sections->btf.has_value()) {
    return absl::NotFoundError("the ELF file has no section .BTF");
  }
  if (sections->has_base) {
    return absl::FailedPreconditionError(
        "the ELF file's BTF is not numbered as the kernel's (.BTF.base); take "
        "it from /sys/kernel/btf while the module is loaded");
  }
  const std::optional<std::string_view> found = BytesOf(*sections->btf, bytes);
  if (!found.has_value()) {
    return absl::InvalidArgumentError(
        "damaged ELF file: section .BTF is not in it");
  }
  return std::string(*found);
}

}  // namespace ksweep
