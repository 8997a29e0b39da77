// Makes the bytes of a table from rows.

#ifndef KSWEEP_LIB_INDEX_TABLE_BUILDER_H_
#define KSWEEP_LIB_INDEX_TABLE_BUILDER_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/index/dictionary.h"
#include "lib/index/row.h"
#include "lib/index/segment.h"
#include "lib/index/table.h"

namespace ksweep {

// The bytes of a table, for whoever keeps them.
struct OwnedTableBytes {
  std::array<std::string, kTablePartCnt> parts;

  TableBytes Views() const;
};

// `rows` in any order, `owners` by the rows' numbers. FailedPrecondition if
// there are more than an index can hold.
absl::StatusOr<OwnedTableBytes> BuildTable(
    std::vector<Row> rows, absl::Span<const std::string_view> owners,
    const SegmentOptions& segments, const Dictionary& dictionary);

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_TABLE_BUILDER_H_
