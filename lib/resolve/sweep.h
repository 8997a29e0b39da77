// The one pass over the symbols, each searched in the sorted requests.

#ifndef KSWEEP_LIB_RESOLVE_SWEEP_H_
#define KSWEEP_LIB_RESOLVE_SWEEP_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ksweep/resolve.h"
#include "lib/base/arena.h"
#include "lib/resolve/request_sets.h"
#include "lib/resolve/sweep_plan.h"
#include "lib/source/list_file.h"

namespace ksweep {

// One function symbol that matched, or that shares address and owner with one
// that did.
struct SymbolRow {
  uint64_t addr = 0;
  const char* name_data = nullptr;
  uint32_t name_len = 0;
  uint32_t requests = RequestSets::kEmpty;  // in RequestSets
  uint32_t owner = 0;                       // 0: the core kernel
  char type = '?';
  bool plain = false;  // some request takes it by its very name
  bool clone = false;  // some request takes it as the compiler's copy

  std::string_view name() const { return {name_data, name_len}; }
};

// A match that only holds if something else is known, too.
struct SoftMatch {
  enum class How : uint8_t {
    kLlvm,      // if no function has exactly the name
    kClone,     // if clones are asked for
    kBtfClone,  // never: BTF is of the function, not of its copies
    kSyscall,   // if `detail` is the kernel's prefix
    kNear,      // if ftrace's location is the address asked for
  };
  uint32_t row = 0;
  uint32_t request = 0;
  How how = How::kLlvm;
  uint8_t detail = 0;
};

// What was seen of one request.
struct RequestSeen {
  bool exact = false;  // a function of exactly its name, in its owners
  bool other = false;  // a symbol of that name or address that is no function
};

struct SweepResult {
  std::vector<SymbolRow> rows;  // in the order of the text
  std::vector<SoftMatch> soft;
  RequestSets sets;
  std::vector<RequestSeen> seen;         // by request
  std::vector<std::string_view> owners;  // by number; [0] is the core, ""
  std::array<uint64_t, kMarkerCnt> markers = {};
  uint32_t syscall_prefixes = 0;  // bit i: kSyscallPrefixes[i] was seen
  // Names of the data and such that lie at a requested address.
  std::vector<std::pair<uint32_t, std::string_view>> other_at_addr;

  bool has_shown = false;   // a function with an address
  bool has_hidden = false;  // one with address 0
  uint64_t lines = 0;
  uint64_t malformed = 0;
  std::vector<uint64_t> malformed_lines;
  // The core's symbols are not in address order, or a module's not together, so
  // that names of one address may have been missed; see second_pass.h.
  bool disordered = false;

  Arena text;

  AddressState addresses() const {
    if (!has_hidden) return AddressState::kFull;
    return has_shown ? AddressState::kPartial : AddressState::kHidden;
  }
};

struct SweepOptions {
  bool stop_early = false;
};

// Passes over `kallsyms` once. Rows refer to the plan, which has to outlive the
// result. Memory for the rows, one buffer, and the symbols of one module.
absl::Status Sweep(const SweepPlan& plan, const SweepOptions& options,
                   ListFile* kallsyms, SweepResult* result);

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_SWEEP_H_
