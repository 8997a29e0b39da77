// Every symbol of several tables in address order.

#ifndef KSWEEP_LIB_INDEX_WALK_H_
#define KSWEEP_LIB_INDEX_WALK_H_

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "ksweep/symbol_index.h"
#include "lib/index/table.h"

namespace ksweep {

// Calls `visit` until it returns false. False if a table is damaged. Tables
// that come first do so at one address.
bool WalkTables(absl::Span<const Table* const> tables,
                absl::FunctionRef<bool(const IndexSymbolView&)> visit);

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_WALK_H_
