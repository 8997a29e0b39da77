// The functions that ftrace can hook: available_filter_functions and
// available_filter_functions_addrs.

#ifndef KSWEEP_LIB_SOURCE_FILTER_LIST_H_
#define KSWEEP_LIB_SOURCE_FILTER_LIST_H_

#include <cstdint>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "ksweep/kernel_files.h"
#include "lib/source/list_file.h"

namespace ksweep {

struct FilterFunc {
  // Where ftrace hooks in, often some bytes behind the function's start; 0 in
  // the list without addresses.
  uint64_t location = 0;
  std::string_view name;
  std::string_view module;  // empty: the core kernel
};

// Reads one line, without its newline, of the list with or without addresses.
// False if it has not that form.
bool ParseFilterFunc(std::string_view line, bool with_addrs, FilterFunc* func);

// Calls `visit` for each function in the open list but for the kernel's
// placeholders of dropped functions, until it returns false. Views live as long
// as the call. Lines of another form are skipped and counted in `malformed`.
absl::Status ReadFilterFuncs(ListFile* file, bool with_addrs,
                             absl::FunctionRef<bool(const FilterFunc&)> visit,
                             uint64_t* malformed);

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_FILTER_LIST_H_
