#include "lib/index/read_symbols.h"

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"
#include "lib/index/index_data.h"
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
    return Annotate(status, files.Path(KernelFile::kKallsyms) + ": ");
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
  if (!status.ok()) return Annotate(status, path + ": ");
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

std::string KernelBootId(const KernelFiles& files) {
  const absl::StatusOr<std::string> text =
      ReadSmallFile(files, KernelFile::kBootId);
  return text.ok() ? text->substr(0, text->find('\n')) : std::string();
}

}  // namespace ksweep
