// Symbols from where they are listed.

#ifndef KSWEEP_LIB_INDEX_READ_SYMBOLS_H_
#define KSWEEP_LIB_INDEX_READ_SYMBOLS_H_

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ksweep/kernel_files.h"
#include "lib/index/index_data.h"
#include "lib/index/symbol_list.h"

namespace ksweep {

// Adds what kallsyms lists. FailedPrecondition if it shows no addresses, with
// the sysctl's value.
absl::Status ReadKallsyms(const KernelFiles& files, SymbolList* list);

// Adds what a System.map lists. FailedPrecondition for a placeholder.
absl::Status ReadSystemMap(const std::string& path, SymbolList* list);

// What an ELF file tells besides its symbols.
struct ElfSource {
  BuildFacts facts;
  std::string module;  // that it is; empty: it is the core kernel
  // Raw. NotFound if there is none.
  absl::StatusOr<std::string> btf = absl::NotFoundError("no BTF");
};

// Adds the symbols of vmlinux or of a module on disk. `path` names a module
// that does not do so itself.
absl::StatusOr<ElfSource> ReadElf(std::string_view bytes,
                                  const std::string& path, SymbolList* list);

// Calls `visit` with the symbol of each line that can be read, until it returns
// false.
absl::Status ForEachKsym(const KernelFiles& files,
                         absl::FunctionRef<bool(const Symbol&)> visit);

// The boot of the kernel; empty if it cannot be read.
std::string KernelBootId(const KernelFiles& files);

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_READ_SYMBOLS_H_
