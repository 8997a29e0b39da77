// The functions that a run is about, and how many the kernel offers of them.

#ifndef KSWEEP_SELFTESTS_BENCH_ATTACH_SCOPE_H_
#define KSWEEP_SELFTESTS_BENCH_ATTACH_SCOPE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ksweep/kind.h"
#include "ksweep/resolve.h"
#include "selftests/bench/attach/amount.h"

namespace ksweep::bench {

enum class Scope : uint8_t { kCore, kModules, kAll };

std::string_view ScopeName(Scope scope);

// With the default deny list.
absl::StatusOr<Resolution> ResolveScope(Scope scope, KindSet kinds,
                                        const Amount& amount);

// Lines of the kernel's filter list, counted without the library's reader.
struct ListCounts {
  uint64_t lines = 0;
  uint64_t placeholders = 0;
  uint64_t denied = 0;

  uint64_t wanted() const { return lines - placeholders - denied; }
};

std::string ListText(const ListCounts& list);

struct FilterList {
  ListCounts core;
  ListCounts modules;

  ListCounts Of(Scope scope) const;
};

// NotFound if it is empty, as for a user who is not root.
absl::StatusOr<FilterList> CountFilterList(const Amount& amount);

// Ok if `resolution` has what `list` offers.
absl::Status CheckTargets(const Resolution& resolution, const ListCounts& list);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_ATTACH_SCOPE_H_
