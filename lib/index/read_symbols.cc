#include "lib/index/read_symbols.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"
#include "lib/index/index_data.h"
#include "lib/source/btf_elf.h"
#include "lib/source/elf_symbols.h"
#include "lib/source/kallsyms.h"
#include "lib/source/line_reader.h"
#include "lib/source/list_file.h"
#include "lib/source/restrictions.h"

namespace ksweep {
namespace {

absl::StatusOr<ListFile> OpenKallsyms(const KernelFiles& files) {
  return ListFile::Open(files, KernelFile::kKallsyms);
}

absl::Status AddLines(ListFile* file, SymbolList* list) {
  absl::Status added;
  bool stop = false;
  uint64_t number = 0;
  absl::Status status = ReadLines(
      file,
      [&](std::string_view line) {
        added = list->AddLine(line, ++number);
        stop = !added.ok();
      },
      &stop);
  return status.ok() ? added : status;
}

// Debian installs "ffffffffffffffff B The real System.map is in the
// linux-image-<version>-dbg package".
constexpr std::string_view kPlaceholder = "The real System.map is in the ";

// As the kernel would call a module of that file.
std::string ModuleOf(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  name = name.substr(0, name.find('.'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

absl::Status CheckPlaceholder(const SymbolList& list, const std::string& path) {
  for (const Row& row : list.core()) {
    const size_t at = row.name.find(kPlaceholder);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = row.name.substr(at + kPlaceholder.size());
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s is a placeholder; the real one is in the package %s", path,
        Av(rest.substr(0, rest.find(' ')))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadKallsyms(const KernelFiles& files, SymbolList* list) {
  absl::StatusOr<ListFile> file = OpenKallsyms(files);
  if (!file.ok()) return file.status();
  absl::Status status = AddLines(&*file, list);
  if (!status.ok()) {
    return Annotate(status, files.Path(KernelFile::kKallsyms));
  }
  if (list->hidden()) {
    return absl::FailedPreconditionError(ExplainHiddenAddresses(files));
  }
  return CheckAddresses(*list);
}

absl::Status ReadSystemMap(const std::string& path, SymbolList* list) {
  KernelFiles files;
  files.Override(KernelFile::kKallsyms, path);
  absl::StatusOr<ListFile> file = OpenKallsyms(files);
  if (!file.ok()) return file.status();
  absl::Status status = AddLines(&*file, list);
  if (!status.ok()) return Annotate(status, path);
  status = CheckPlaceholder(*list, path);
  return status.ok() ? CheckAddresses(*list) : status;
}

absl::Status ForEachKsym(const KernelFiles& files,
                         absl::FunctionRef<bool(const Symbol&)> visit) {
  absl::StatusOr<ListFile> file = OpenKallsyms(files);
  if (!file.ok()) return file.status();
  bool stop = false;
  return ReadLines(
      &*file,
      [&](std::string_view line) {
        Symbol symbol;
        if (ParseKsymLine(line, &symbol)) stop = !visit(symbol);
      },
      &stop);
}

absl::StatusOr<ElfSource> ReadElf(std::string_view bytes,
                                  const std::string& path, SymbolList* list) {
  std::vector<Symbol> symbols;
  absl::StatusOr<ElfFacts> elf =
      ReadElfSymbols(bytes, [&symbols](const Symbol& symbol) {
        symbols.push_back(symbol);
        return absl::OkStatus();
      });
  if (!elf.ok()) return elf.status();
  if (elf->is_module && elf->module.empty()) elf->module = ModuleOf(path);
  for (Symbol& symbol : symbols) {
    if (elf->is_module) symbol.module = elf->module;
    absl::Status status = list->Add(symbol);
    if (!status.ok()) return status;
  }
  ElfSource source;
  source.facts.borders = std::move(elf->borders);
  std::sort(source.facts.borders.begin(), source.facts.borders.end());
  source.btf = BtfOfElf(bytes);
  if (elf->is_module) {
    source.module = elf->module;
  } else {
    source.facts.build_id = std::move(elf->build_id);
  }
  return source;
}

std::string KernelBootId(const KernelFiles& files) {
  const absl::StatusOr<std::string> text =
      ReadSmallFile(files, KernelFile::kBootId);
  return text.ok() ? text->substr(0, text->find('\n')) : std::string();
}

}  // namespace ksweep
