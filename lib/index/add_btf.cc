// The tables of BTF ids of IndexData.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errno_status.h"
#include "lib/index/index_data.h"
#include "lib/source/btf.h"
#include "lib/source/btf_elf.h"

namespace ksweep {
namespace {

using Items = std::vector<BtfIds::Item>;

// The record of the first symbol of each function's name that belongs to
// `module`.
absl::StatusOr<Items> Locate(const Btf& btf, const Table& table,
                             std::string_view module) {
  Items items;
  NameBuffer buffer;
  std::vector<Entry> entries;
  for (const BtfFunc& func : btf.funcs()) {
    entries.clear();
    bool ok = table.FindAll(func.name, &entries);
    for (const Entry& entry : entries) {
      IndexSymbolView symbol;
      ok = ok && table.Describe(entry, &buffer, &symbol);
      if (!ok) break;
      if (symbol.module != module) continue;
      items.push_back({func.id, entry.offset});
      break;
    }
    if (!ok) {
      return absl::DataLossError("the index is damaged: run its verification");
    }
  }
  return items;
}

absl::StatusOr<std::unique_ptr<Btf>> ParseBtf(std::string bytes,
                                              const Btf* base = nullptr) {
  if (!IsElf(bytes)) return Btf::Parse(std::move(bytes), base);
  absl::StatusOr<std::string> raw = BtfOfElf(bytes);
  if (!raw.ok()) return raw.status();
  return Btf::Parse(*std::move(raw), base);
}

absl::Status AddParsed(const Btf& btf, IndexData* data) {
  const absl::StatusOr<Items> items = Locate(btf, data->core.table, "");
  if (!items.ok()) return items.status();
  auto storage = std::make_shared<const std::string>(BtfIds::Pack(*items));
  absl::StatusOr<BtfIds> ids = BtfIds::Make(*storage);
  if (!ids.ok()) return ids.status();
  data->btf = *ids;
  data->btf_bytes = *storage;
  data->btf_storage = std::move(storage);
  data->file = nullptr;
  return absl::OkStatus();
}

// What is wrong with one module's BTF is an entry for that module.
absl::Status AppendModule(std::string_view module,
                          const absl::StatusOr<const Btf*>& btf,
                          const Table& table, std::string* packed) {
  if (!btf.ok()) {
    ModulesBtf::AppendError(module, btf.status(), packed);
    return absl::OkStatus();
  }
  const absl::StatusOr<Items> items = Locate(**btf, table, module);
  if (!items.ok()) return items.status();
  ModulesBtf::AppendIds(module, (*btf)->first_id(), *items, packed);
  return absl::OkStatus();
}

absl::Status UsePacked(std::string packed, IndexData* data) {
  auto storage = std::make_shared<const std::string>(std::move(packed));
  absl::StatusOr<ModulesBtf> ids = ModulesBtf::Make(*storage);
  if (!ids.ok()) return ids.status();
  data->modules_btf = {*storage, *std::move(ids), storage};
  data->file = nullptr;
  return absl::OkStatus();
}

}  // namespace

absl::Status AddBtf(std::string btf, IndexData* data) {
  const absl::StatusOr<std::unique_ptr<Btf>> parsed = ParseBtf(std::move(btf));
  return parsed.ok() ? AddParsed(**parsed, data) : parsed.status();
}

absl::Status AddBtfOf(BtfStore* store, IndexData* data) {
  const absl::StatusOr<const Btf*> core = store->Get("");
  return core.ok() ? AddParsed(**core, data) : core.status();
}

absl::Status AddModulesBtfOf(BtfStore* store, IndexData* data) {
  const absl::StatusOr<std::vector<std::string>> listed = store->ListModules();
  const Table& table = data->modules.table;
  std::vector<std::string_view> owners(table.owners().begin(),
                                       table.owners().end());
  std::sort(owners.begin(), owners.end());
  std::string packed;
  for (std::string_view owner : owners) {
    if (!listed.ok() ||
        !std::binary_search(listed->begin(), listed->end(), owner)) {
      continue;
    }
    absl::Status status =
        AppendModule(owner, store->Get(owner), table, &packed);
    if (!status.ok()) return status;
  }
  return UsePacked(std::move(packed), data);
}

absl::Status AddModuleBtf(std::string_view module,
                          absl::StatusOr<std::string> btf,
                          const std::string& base, IndexData* data) {
  if (absl::IsNotFound(btf.status())) return absl::OkStatus();
  absl::Status status = btf.status();
  if (status.ok() && base.empty()) {
    status = absl::FailedPreconditionError(
        "module BTF goes on where the kernel's ends, which was not given");
  }
  std::unique_ptr<Btf> core, own;
  if (status.ok()) {
    absl::StatusOr<std::unique_ptr<Btf>> parsed = ParseBtf(base);
    // It was given for this, so it is no matter of the module.
    if (!parsed.ok()) return parsed.status();
    core = *std::move(parsed);
    parsed = ParseBtf(*std::move(btf), core.get());
    status = parsed.status();
    if (parsed.ok()) own = *std::move(parsed);
  }
  std::string packed;
  const auto object =
      own == nullptr ? absl::StatusOr<const Btf*>(status) : own.get();
  status = AppendModule(module, object, data->modules.table, &packed);
  return status.ok() ? UsePacked(std::move(packed), data) : status;
}

}  // namespace ksweep
