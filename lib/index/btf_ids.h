// From the ids of BTF functions to records.

#ifndef KSWEEP_LIB_INDEX_BTF_IDS_H_
#define KSWEEP_LIB_INDEX_BTF_IDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ksweep {

// A bit for each id, counts of bits, and a packed offset for each bit that is
// set. Does not own its bytes.
class BtfIds {
 public:
  struct Item {
    uint32_t id;
    uint32_t offset;
  };

  // `items` ascend by id.
  static std::string Pack(absl::Span<const Item> items);

  // DataLoss if the sizes do not fit.
  static absl::StatusOr<BtfIds> Make(std::string_view packed);

  std::optional<uint32_t> Find(uint32_t id) const;

  // Calls `visit` with each id and its offset.
  void ForEach(absl::FunctionRef<void(uint32_t, uint32_t)> visit) const;

 private:
  static constexpr uint32_t kWordsPerCount = 8;

  uint32_t words_ = 0;
  uint32_t items_ = 0;
  unsigned offset_bits_ = 1;
  const char* bits_ = nullptr;
  const char* counts_ = nullptr;  // of bits in front of every 8th word
  const char* offsets_ = nullptr;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_BTF_IDS_H_
