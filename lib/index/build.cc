// IndexData from symbols.

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/index/dictionary_trainer.h"
#include "lib/index/index_data.h"
#include "lib/index/table_builder.h"
#include "lib/source/kallsyms.h"

namespace ksweep {
namespace {

// The borders that anyone knows of, ascending. Nothing belongs to what is
// behind `_end` but `_end` itself.
std::vector<uint64_t> BordersOf(const SymbolList& list,
                                const BuildOptions& options,
                                const BuildFacts& facts) {
  std::vector<uint64_t> borders = options.borders;
  borders.insert(borders.end(), facts.borders.begin(), facts.borders.end());
  if (list.end().has_value()) {
    borders.push_back(*list.end());
    borders.push_back(*list.end() + 1);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

absl::Status BuildPart(std::vector<Row> rows,
                       absl::Span<const std::string_view> owners,
                       const SegmentOptions& segments,
                       const std::shared_ptr<const Dictionary>& dictionary,
                       IndexPart* part) {
  absl::StatusOr<OwnedTableBytes> bytes =
      BuildTable(std::move(rows), owners, segments, *dictionary);
  if (!bytes.ok()) return bytes.status();
  auto storage = std::make_shared<OwnedTableBytes>(*std::move(bytes));
  absl::StatusOr<Table> table = Table::Make(storage->Views(), dictionary);
  if (!table.ok()) return table.status();
  part->table = *std::move(table);
  part->storage = std::move(storage);
  return absl::OkStatus();
}

uint64_t TotalBytes(const TableBytes& bytes) {
  uint64_t total = 0;
  for (std::string_view part : bytes) total += part.size();
  return total;
}

void UseDictionary(std::shared_ptr<const Dictionary> dictionary,
                   IndexData* data) {
  data->packed_dictionary = dictionary->Pack();
  data->dictionary = std::move(dictionary);
}

std::shared_ptr<const Dictionary> TrainOwn(absl::Span<const Row> rows) {
  std::map<std::string_view, uint64_t> weights;
  for (const Row& row : rows) ++weights[row.name];
  std::vector<TrainingName> names;
  for (const auto& [name, weight] : weights) names.push_back({name, weight});
  return std::make_shared<const Dictionary>(TrainDictionary(names));
}

// Builds the core with a dictionary of its own, and keeps that if it is
// smaller.
absl::Status TryOwnDictionary(const std::vector<Row>& rows,
                              const SegmentOptions& segments, IndexData* data) {
  const std::shared_ptr<const Dictionary> dictionary = TrainOwn(rows);
  IndexPart part;
  absl::Status status =
      BuildPart(rows, {std::string_view()}, segments, dictionary, &part);
  if (!status.ok()) return status;
  const uint64_t own =
      TotalBytes(part.table.bytes()) + dictionary->Pack().size();
  const uint64_t built_in =
      TotalBytes(data->core.table.bytes()) + data->packed_dictionary.size();
  if (own >= built_in) return absl::OkStatus();
  data->core = std::move(part);
  data->info.own_dictionary = true;
  UseDictionary(dictionary, data);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAddresses(const SymbolList& list) {
  if (list.hidden()) {
    return absl::FailedPreconditionError(
        "all addresses are 0; an index needs them. Read the symbols as root, "
        "with kernel.kptr_restrict below 2");
  }
  if (!list.first_zero_function().empty()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "function '%s' is at address 0 while others are not: not all "
        "addresses are shown",
        std::string(list.first_zero_function())));
  }
  return absl::OkStatus();
}

absl::StatusOr<IndexData> BuildIndexData(SymbolList* list,
                                         const BuildOptions& options,
                                         const BuildFacts& facts) {
  IndexData data;
  UseDictionary(Dictionary::BuiltIn(), &data);
  data.info.build_id =
      options.build_id.empty() ? facts.build_id : options.build_id;
  data.info.has_stext = list->stext().has_value();
  data.info.stext = list->stext().value_or(0);

  const std::vector<uint64_t> borders = BordersOf(*list, options, facts);
  SegmentOptions segments;
  segments.borders = borders;
  segments.tail_bytes = options.tail_bytes;
  segments.end_mark = list->end();
  segments.has_stext = data.info.has_stext;
  segments.stext = data.info.stext;
  std::vector<Row> rows = std::move(list->core());
  absl::Status status =
      BuildPart(options.own_dictionary ? rows : std::move(rows),
                {std::string_view()}, segments, data.dictionary, &data.core);
  if (status.ok() && options.own_dictionary) {
    status = TryOwnDictionary(rows, segments, &data);
  }
  if (status.ok() && (facts.knows_modules || !list->modules().empty())) {
    status = ReplaceModules(list, facts, options.tail_bytes, &data);
  }
  if (!status.ok()) return status;
  return data;
}

absl::Status ReplaceModules(SymbolList* list, const BuildFacts& facts,
                            uint64_t tail_bytes, IndexData* data) {
  SegmentOptions segments;
  // Ascending: they are of an ELF file, or there are none.
  segments.borders = facts.borders;
  segments.tail_bytes = tail_bytes;
  IndexPart part;
  absl::Status status = BuildPart(std::move(list->modules()), list->owners(),
                                  segments, data->dictionary, &part);
  if (!status.ok()) return status;
  data->modules = std::move(part);
  data->modules_left_out = false;
  data->modules_btf = {};
  // The file's checksums are not about these.
  data->file = nullptr;
  ModulesInfo info;
  info.generation = facts.generation;
  info.boot_id = facts.boot_id;
  info.has_stext = list->stext().has_value();
  info.stext = list->stext().value_or(0);
  data->modules_info = std::move(info);
  return absl::OkStatus();
}

}  // namespace ksweep
