// The BTF ids of modules, each of which has BTF of its own.

#ifndef KSWEEP_LIB_INDEX_MODULES_BTF_H_
#define KSWEEP_LIB_INDEX_MODULES_BTF_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/index/btf_ids.h"

namespace ksweep {

// Packed, they are a row of objects, ascending by module:
//
//   text module   u8 0, u32 first id, bytes of BtfIds
//                 u8 status code, text message
//
// Texts and bytes have their size in front, as LEB128.
class ModulesBtf {
 public:
  // Of one module. Views into the packed bytes.
  struct Object {
    std::string_view module;
    // Why there are no ids.
    absl::StatusCode code = absl::StatusCode::kOk;
    std::string_view message;
    // The ids are counted from the first one, since those below are the core's.
    uint32_t first_id = 0;
    BtfIds ids;
  };

  // `items` are of the whole BTF, ascending by id, none below `first_id`.
  static void AppendIds(std::string_view module, uint32_t first_id,
                        absl::Span<const BtfIds::Item> items,
                        std::string* packed);
  static void AppendError(std::string_view module, const absl::Status& status,
                          std::string* packed);

  // DataLoss for what is not made of these, or out of order.
  static absl::StatusOr<ModulesBtf> Make(std::string_view packed);

  absl::Span<const Object> objects() const { return objects_; }
  // Null if there is none.
  const Object* Find(std::string_view module) const;

 private:
  std::vector<Object> objects_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_MODULES_BTF_H_
