#include "lib/index/modules_btf.h"

#include <algorithm>
#include <utility>

#include "lib/base/abseil.h"
#include "lib/index/le.h"

namespace ksweep {
namespace {

constexpr uint8_t kLastCode =
    static_cast<uint8_t>(absl::StatusCode::kUnauthenticated);

void AppendBytes(std::string_view bytes, std::string* packed) {
  AppendLeb(bytes.size(), packed);
  packed->append(bytes);
}

std::string_view TakeSized(LeReader* reader) {
  const uint64_t size = reader->TakeLeb();
  return reader->TakeBytes(size);
}

absl::Status Damaged() {
  return absl::DataLossError("the index's BTF ids of modules are damaged");
}

}  // namespace

void ModulesBtf::AppendIds(std::string_view module, uint32_t first_id,
                           absl::Span<const BtfIds::Item> items,
                           std::string* packed) {
  std::vector<BtfIds::Item> own(items.begin(), items.end());
  for (BtfIds::Item& item : own) item.id -= first_id;
  AppendBytes(module, packed);
  AppendLe(static_cast<uint8_t>(absl::StatusCode::kOk), packed);
  AppendLe(first_id, packed);
  AppendBytes(BtfIds::Pack(own), packed);
}

void ModulesBtf::AppendError(std::string_view module,
                             const absl::Status& status, std::string* packed) {
  AppendBytes(module, packed);
  AppendLe(static_cast<uint8_t>(status.code()), packed);
  AppendBytes(Sv(status.message()), packed);
}

absl::StatusOr<ModulesBtf> ModulesBtf::Make(std::string_view packed) {
  ModulesBtf made;
  LeReader reader(packed);
  while (!reader.rest().empty()) {
    Object object;
    object.module = TakeSized(&reader);
    const auto code = reader.Take<uint8_t>();
    if (code > kLastCode) return Damaged();
    object.code = static_cast<absl::StatusCode>(code);
    if (object.code == absl::StatusCode::kOk) {
      object.first_id = reader.Take<uint32_t>();
      absl::StatusOr<BtfIds> ids = BtfIds::Make(TakeSized(&reader));
      if (!ids.ok()) return ids.status();
      object.ids = *ids;
    } else {
      object.message = TakeSized(&reader);
    }
    if (!reader.ok()) return Damaged();
    if (!made.objects_.empty() &&
        made.objects_.back().module >= object.module) {
      return Damaged();
    }
    made.objects_.push_back(object);
  }
  return made;
}

const ModulesBtf::Object* ModulesBtf::Find(std::string_view module) const {
  const auto at =
      std::lower_bound(objects_.begin(), objects_.end(), module,
                       [](const Object& object, std::string_view m) {
                         return object.module < m;
                       });
  return at == objects_.end() || at->module != module ? nullptr : &*at;
}

}  // namespace ksweep
