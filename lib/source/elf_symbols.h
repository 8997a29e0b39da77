// The symbol table of an ELF file: vmlinux, or a module on disk.

#ifndef KSWEEP_LIB_SOURCE_ELF_SYMBOLS_H_
#define KSWEEP_LIB_SOURCE_ELF_SYMBOLS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ksweep/symbol.h"

namespace ksweep {

struct ElfFacts {
  std::string build_id;  // bytes; empty: none
  // That a module gives itself, for a file that still has to be loaded.
  bool is_module = false;
  std::string module;
  // Starts and ends of the sections that are loaded.
  std::vector<uint64_t> borders;
};

// Calls `visit` with each symbol that has a place in memory, until it fails;
// types as nm(1) gives them. The sections of a module lie one behind the other
// from 0 on, in the order of the file, since no one knows where they will be.
//
// InvalidArgument if it is no ELF file or a damaged one; NotFound if it has no
// symbol table.
absl::StatusOr<ElfFacts> ReadElfSymbols(
    std::string_view bytes,
    absl::FunctionRef<absl::Status(const Symbol&)> visit);

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_ELF_SYMBOLS_H_
