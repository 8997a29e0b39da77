// Symbols collected for an index.

#ifndef KSWEEP_LIB_INDEX_SYMBOL_LIST_H_
#define KSWEEP_LIB_INDEX_SYMBOL_LIST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ksweep/symbol.h"
#include "lib/base/arena.h"
#include "lib/index/row.h"

namespace ksweep {

// The core kernel's symbols and those with an owner, apart. Copies what it
// keeps.
class SymbolList {
 public:
  static constexpr size_t kMaxNameBytes = 65535;

  enum class Keep : uint8_t { kAll, kModulesOnly };
  explicit SymbolList(Keep keep = Keep::kAll) : keep_(keep) {}

  // InvalidArgument for a name that an index cannot hold.
  absl::Status Add(const Symbol& symbol);

  // Adds the line of kallsyms, the `number`-th, counted from 1.
  absl::Status AddLine(std::string_view line, uint64_t number);
  absl::Status AddText(std::string_view text);

  // Whether addresses are hidden: there are functions, or at least symbols,
  // and all show 0.
  bool hidden() const {
    return seen_ > 0 &&
           (nonzero_ == 0 || (functions_ > 0 && zero_functions_ == functions_));
  }
  // The first function at 0 although others have addresses; empty if there is
  // none.
  std::string_view first_zero_function() const { return first_zero_; }

  std::vector<Row>& core() { return core_; }
  const std::vector<Row>& core() const { return core_; }
  std::vector<Row>& modules() { return modules_; }
  // By the owners' numbers. Number 0 is the core, the others are in the order
  // in which they came.
  const std::vector<std::string_view>& owners() const { return owners_; }
  std::optional<uint64_t> stext() const { return stext_; }
  std::optional<uint64_t> end() const { return end_; }

 private:
  uint32_t OwnerOf(std::string_view module);
  void NoteAddress(const Symbol& symbol);
  void NoteMark(const Symbol& symbol);

  Keep keep_;
  Arena arena_;
  std::vector<Row> core_, modules_;
  std::vector<std::string_view> owners_ = {""};
  absl::flat_hash_map<std::string, uint32_t> owner_numbers_;
  std::optional<uint64_t> stext_, end_;
  uint64_t seen_ = 0, nonzero_ = 0;
  uint64_t zero_functions_ = 0, functions_ = 0;
  std::string_view first_zero_;
};

// Symbols of arm and RISC-V that mark where code or data begins: `$a`, `$d`,
// `$t`, `$x`, and these with anything behind a dot.
bool IsMappingSymbol(std::string_view name);

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_SYMBOL_LIST_H_
