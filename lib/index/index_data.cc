#include "lib/index/index_data.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "lib/index/le.h"

namespace ksweep {
namespace {

void AppendText(std::string_view text, std::string* out) {
  AppendLeb(text.size(), out);
  out->append(text);
}

std::string TakeText(LeReader* reader) {
  const uint64_t size = reader->TakeLeb();
  return std::string(reader->TakeBytes(size));
}

absl::Status InfoDamaged() {
  return absl::DataLossError("the index's description has another size");
}

// What is small, or what every lookup rests on.
bool IsCheckedAtOnce(SectionKind kind) {
  if (kind < kCoreSections) {
    return kind != kBtfSection && kind != kModulesBtfSection;
  }
  switch (static_cast<TablePart>(kind % 16)) {
    case TablePart::kRecords:
    case TablePart::kPages:
    case TablePart::kPilots:
    case TablePart::kSlots:
    case TablePart::kDuplicates:
      return false;
    case TablePart::kShape:
    case TablePart::kSegments:
    case TablePart::kTypes:
    case TablePart::kOwners:
      return true;
  }
  return true;
}

absl::Status CheckSections(const Container& file, bool all) {
  if (all) return file.CheckAll();
  for (const auto& [kind, bytes] : file.sections()) {
    if (!IsCheckedAtOnce(kind)) continue;
    absl::Status status = file.Check(kind);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ParseTable(const Container& file, SectionKind first,
                        const IndexData& data,
                        std::shared_ptr<const void> storage, IndexPart* part) {
  TableBytes bytes;
  for (uint32_t i = 0; i < kTablePartCnt; ++i) {
    if (!file.Has(first + i)) {
      return absl::DataLossError("damaged: a part of a table is missing");
    }
    bytes[i] = file.Get(first + i);
  }
  absl::StatusOr<Table> table = Table::Make(bytes, data.dictionary);
  if (!table.ok()) return table.status();
  part->table = *std::move(table);
  part->storage = std::move(storage);
  return absl::OkStatus();
}

absl::Status ParseDictionary(const Container& file, IndexData* data) {
  if (!file.Has(kDictionarySection)) {
    return absl::DataLossError("damaged: the dictionary is missing");
  }
  const std::string_view packed = file.Get(kDictionarySection);
  data->packed_dictionary = std::string(packed);
  if (packed == data->dictionary->Pack()) return absl::OkStatus();
  absl::StatusOr<std::shared_ptr<const Dictionary>> dictionary =
      Dictionary::Unpack(packed);
  if (!dictionary.ok()) return dictionary.status();
  data->dictionary = *std::move(dictionary);
  return absl::OkStatus();
}

}  // namespace

std::string CoreInfo::Pack() const {
  std::string packed;
  AppendText(build_id, &packed);
  AppendLe(static_cast<uint8_t>(has_stext), &packed);
  AppendLe(stext, &packed);
  AppendLe(static_cast<uint8_t>(own_dictionary), &packed);
  return packed;
}

absl::StatusOr<CoreInfo> CoreInfo::Unpack(std::string_view packed) {
  LeReader reader(packed);
  CoreInfo info;
  info.build_id = TakeText(&reader);
  info.has_stext = reader.Take<uint8_t>() != 0;
  info.stext = reader.Take<uint64_t>();
  info.own_dictionary = reader.Take<uint8_t>() != 0;
  if (!reader.ok() || !reader.rest().empty()) return InfoDamaged();
  return info;
}

std::string ModulesInfo::Pack() const {
  std::string packed;
  AppendLe(generation, &packed);
  AppendText(boot_id, &packed);
  AppendLe(static_cast<uint8_t>(has_stext), &packed);
  AppendLe(stext, &packed);
  return packed;
}

absl::StatusOr<ModulesInfo> ModulesInfo::Unpack(std::string_view packed) {
  LeReader reader(packed);
  ModulesInfo info;
  info.generation = reader.Take<uint64_t>();
  info.boot_id = TakeText(&reader);
  info.has_stext = reader.Take<uint8_t>() != 0;
  info.stext = reader.Take<uint64_t>();
  if (!reader.ok() || !reader.rest().empty()) return InfoDamaged();
  return info;
}

Sections SectionsOf(const IndexData& data,
                    std::array<std::string, 2>* scratch) {
  Sections sections;
  (*scratch)[0] = data.info.Pack();
  sections[kInfoSection] = (*scratch)[0];
  sections[kDictionarySection] = data.packed_dictionary;
  for (uint32_t i = 0; i < kTablePartCnt; ++i) {
    sections[kCoreSections + i] = data.core.table.bytes()[i];
  }
  if (data.btf_bytes.has_value()) sections[kBtfSection] = *data.btf_bytes;
  if (!data.modules_info.has_value()) return sections;
  (*scratch)[1] = data.modules_info->Pack();
  sections[kModulesInfoSection] = (*scratch)[1];
  for (uint32_t i = 0; i < kTablePartCnt; ++i) {
    sections[kModulesSections + i] = data.modules.table.bytes()[i];
  }
  if (!data.modules_btf.bytes.empty()) {
    sections[kModulesBtfSection] = data.modules_btf.bytes;
  }
  return sections;
}

absl::StatusOr<IndexData> ParseIndexData(std::string_view bytes,
                                         std::shared_ptr<const void> storage,
                                         bool verify) {
  absl::StatusOr<Container> parsed = Container::Parse(bytes);
  if (!parsed.ok()) return parsed.status();
  IndexData data;
  data.file = std::make_shared<const Container>(*std::move(parsed));
  const Container& file = *data.file;
  absl::Status status = CheckSections(file, verify);
  if (!status.ok()) return status;
  absl::StatusOr<CoreInfo> info = CoreInfo::Unpack(file.Get(kInfoSection));
  if (!info.ok()) return info.status();
  data.info = *std::move(info);
  status = ParseDictionary(file, &data);
  if (!status.ok()) return status;
  status = ParseTable(file, kCoreSections, data, storage, &data.core);
  if (!status.ok()) return status;
  if (file.Has(kBtfSection)) {
    absl::StatusOr<BtfIds> btf = BtfIds::Make(file.Get(kBtfSection));
    if (!btf.ok()) return btf.status();
    data.btf = *btf;
    data.btf_bytes = file.Get(kBtfSection);
    data.btf_storage = storage;
  }
  if (!file.Has(kModulesInfoSection)) return data;
  absl::StatusOr<ModulesInfo> modules =
      ModulesInfo::Unpack(file.Get(kModulesInfoSection));
  if (!modules.ok()) return modules.status();
  data.modules_info = *std::move(modules);
  status = ParseTable(file, kModulesSections, data, storage, &data.modules);
  if (!status.ok()) return status;
  if (!file.Has(kModulesBtfSection)) return data;
  const std::string_view packed = file.Get(kModulesBtfSection);
  if (packed.empty()) {
    return absl::DataLossError("the index's BTF ids of modules are damaged");
  }
  absl::StatusOr<ModulesBtf> ids = ModulesBtf::Make(packed);
  if (!ids.ok()) return ids.status();
  data.modules_btf = {packed, *std::move(ids), std::move(storage)};
  return data;
}

void SlideIndexData(uint64_t slide, IndexData* data) {
  data->slide += slide;
  data->core.table.Slide(slide);
}

namespace {

// That each id leads to a symbol that its name leads back to.
absl::Status VerifyIds(const BtfIds& ids, const Table& table,
                       std::string_view module) {
  bool ok = true;
  NameBuffer buffer;
  std::vector<Entry> entries;
  ids.ForEach([&](uint32_t, uint32_t offset) {
    IndexSymbolView symbol;
    ok = ok && offset < table.shape().record_bytes &&
         table.Describe({offset, false}, &buffer, &symbol) &&
         symbol.module == module;
    entries.clear();
    ok = ok && table.FindAll(symbol.name, &entries) &&
         std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
           return entry.offset == offset;
         });
  });
  if (ok) return absl::OkStatus();
  return absl::DataLossError(
      "the index is damaged: a BTF id does not lead to a function");
}

}  // namespace

absl::Status VerifyIndexData(const IndexData& data) {
  if (data.file != nullptr) {
    absl::Status status = data.file->CheckAll();
    if (!status.ok()) return status;
  }
  for (const Table* table : data.tables()) {
    absl::Status status = table->Verify();
    if (!status.ok()) return status;
  }
  absl::Status status = VerifyIds(data.btf, data.core.table, "");
  for (const ModulesBtf::Object& object : data.modules_btf.ids.objects()) {
    if (!status.ok()) return status;
    status = VerifyIds(object.ids, data.modules.table, object.module);
  }
  return status;
}

}  // namespace ksweep
