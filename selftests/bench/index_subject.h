// One kernel's symbols in every form that is compared, and what is asked of
// them.

#ifndef KSWEEP_SELFTESTS_BENCH_INDEX_SUBJECT_H_
#define KSWEEP_SELFTESTS_BENCH_INDEX_SUBJECT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ksweep/symbol_index.h"
#include "selftests/bench/reference/core_symbols.h"
#include "selftests/bench/reference/kernel_table.h"
#include "selftests/bench/reference/name_table.h"
#include "selftests/bench/workload.h"

namespace ksweep::bench {

// Names of one kind, and the addresses they have to be found at.
struct NameQuestion {
  // One behind the other in the order they are asked for, as if they had just
  // been read, each with a NUL: else fetching a name would take longer than
  // finding it.
  std::string text;
  std::vector<std::string_view> views;
  std::vector<uint64_t> addrs;
};

struct AddrQuestion {
  std::vector<uint64_t> addrs;
  std::vector<uint64_t> offsets;  // in the symbols that hold them
};

struct KernelTableOf {
  std::string label;
  KernelForm form;
  std::unique_ptr<KernelNameTable> table;
};

struct Subject {
  const Source* source = nullptr;
  std::vector<CoreSymbol> symbols;
  std::string core_text;  // the lines that `symbols` are

  std::unique_ptr<CompressedNames> names;
  std::vector<KernelTableOf> kernel;  // as kKernelForms
  std::unique_ptr<NameTable> tree;
  std::unique_ptr<NameTable> linear;
  int64_t tree_bytes = 0;
  SymbolIndex index;  // of the core
  int64_t build_peak_bytes = 0;

  NameQuestion functions;  // all, once each, in random order; without pads
  NameQuestion hot;        // 50 of them
  NameQuestion absent;     // as many that look like them
  NameQuestion pads;       // `__pfx_` symbols, if there are any
  AddrQuestion places;     // within functions

  const KernelTableOf& Kernel(KernelForm form) const;
};

// Reads and builds; ends the program if that fails.
std::unique_ptr<Subject> MakeSubject(const Source& source);

// Fills in the names.
void SetNames(absl::Span<const std::string> names, NameQuestion* question);

// The value, or the end of the program.
template <typename T>
T ValueOrDie(absl::StatusOr<T> value);
void OkOrDie(const absl::Status& status);

template <typename T>
T ValueOrDie(absl::StatusOr<T> value) {
  OkOrDie(value.status());
  return *std::move(value);
}

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_INDEX_SUBJECT_H_
