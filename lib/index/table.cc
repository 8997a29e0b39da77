#include "lib/index/table.h"

#include <algorithm>
#include <utility>

#include "lib/index/table_records.h"

namespace ksweep {
namespace {

std::string_view PartOf(const TableBytes& bytes, TablePart part) {
  return bytes[static_cast<size_t>(part)];
}

absl::Status Damaged(const char* what) {
  return absl::DataLossError(std::string("the index is damaged: ") + what);
}

// The core kernel is owner 0 and has no name.
absl::StatusOr<std::vector<std::string_view>> UnpackOwners(
    std::string_view packed) {
  std::vector<std::string_view> owners;
  while (!packed.empty()) {
    const size_t end = packed.find('\0');
    if (end == std::string_view::npos) return Damaged("owners are cut off");
    owners.push_back(packed.substr(0, end));
    packed.remove_prefix(end + 1);
  }
  return owners;
}

}  // namespace

std::string TableShape::Pack() const {
  std::string packed;
  AppendLe(symbols, &packed);
  AppendLe(folded, &packed);
  AppendLe(names, &packed);
  AppendLe(record_bytes, &packed);
  AppendLe(pad_distance, &packed);
  AppendLe(type_runs, &packed);
  AppendLe(locator.seed, &packed);
  AppendLe(locator.buckets, &packed);
  AppendLe(locator.slots, &packed);
  AppendLe(locator.none, &packed);
  AppendLe(locator.slot_bits, &packed);
  return packed;
}

absl::StatusOr<TableShape> TableShape::Unpack(std::string_view packed) {
  LeReader reader(packed);
  TableShape shape;
  shape.symbols = reader.Take<uint64_t>();
  shape.folded = reader.Take<uint64_t>();
  shape.names = reader.Take<uint64_t>();
  shape.record_bytes = reader.Take<uint32_t>();
  shape.pad_distance = reader.Take<uint32_t>();
  shape.type_runs = reader.Take<uint32_t>();
  shape.locator.seed = reader.Take<uint64_t>();
  shape.locator.buckets = reader.Take<uint32_t>();
  shape.locator.slots = reader.Take<uint32_t>();
  shape.locator.none = reader.Take<uint32_t>();
  shape.locator.slot_bits = reader.Take<uint8_t>();
  if (!reader.ok() || !reader.rest().empty()) {
    return Damaged("a table's shape has another size");
  }
  return shape;
}

absl::StatusOr<Table> Table::Make(
    const TableBytes& bytes, std::shared_ptr<const Dictionary> dictionary) {
  Table table;
  table.bytes_ = bytes;
  absl::StatusOr<TableShape> shape =
      TableShape::Unpack(PartOf(bytes, TablePart::kShape));
  if (!shape.ok()) return shape.status();
  table.shape_ = *shape;

  const std::string_view records = PartOf(bytes, TablePart::kRecords);
  const std::string_view pages = PartOf(bytes, TablePart::kPages);
  table.page_cnt_ = PageCnt(shape->record_bytes);
  if (records.size() != uint64_t{shape->record_bytes} + kRecordPadding ||
      pages.size() != uint64_t{table.page_cnt_} * 5) {
    return Damaged("records and pages do not fit each other");
  }
  table.records_ = records.data();
  table.page_bases_ = pages.data();
  table.page_starts_ = pages.data() + size_t{table.page_cnt_} * 4;

  absl::StatusOr<Locator> locator =
      Locator::Make(shape->locator, PartOf(bytes, TablePart::kPilots),
                    PartOf(bytes, TablePart::kSlots));
  absl::StatusOr<std::vector<Segment>> segments =
      UnpackSegments(PartOf(bytes, TablePart::kSegments));
  absl::StatusOr<TypeRuns> types =
      TypeRuns::Make(PartOf(bytes, TablePart::kTypes));
  absl::StatusOr<Duplicates> duplicates =
      Duplicates::Make(PartOf(bytes, TablePart::kDuplicates));
  absl::StatusOr<std::vector<std::string_view>> owners =
      UnpackOwners(PartOf(bytes, TablePart::kOwners));
  for (const absl::Status& status :
       {locator.status(), segments.status(), types.status(),
        duplicates.status(), owners.status()}) {
    if (!status.ok()) return status;
  }
  table.locator_ = *locator;
  table.segments_ = *std::move(segments);
  table.types_ = *types;
  table.duplicates_ = *duplicates;
  table.owners_ = *std::move(owners);
  if (table.types_.size() != shape->type_runs) {
    return Damaged("types are missing");
  }
  if (table.segments_.empty() != (shape->record_bytes == 0)) {
    return Damaged("there are records without a segment, or none");
  }
  for (const Segment& segment : table.segments_) {
    if (segment.owner >= table.owners_.size()) {
      return Damaged("a segment has no owner");
    }
  }
  table.NoteSegments();
  table.NotePages();
  table.slots_ = dictionary->slots();
  table.dictionary_ = std::move(dictionary);
  return table;
}

void Table::Slide(uint64_t slide) {
  for (Segment& segment : segments_) {
    if (segment.slides) segment.base += slide;
  }
  NoteSegments();
}

void Table::NoteSegments() {
  finder_ = SegmentFinder(segments_);
  largest_ = {};
  for (const Segment& segment : segments_) {
    if (segment.span > largest_.span) largest_ = segment;
  }
}

bool Table::VerifyRecord(uint32_t offset, std::string_view name,
                         std::vector<uint32_t>* scratch) const {
  scratch->clear();
  return LocateAll(name, scratch) == LookupState::kFound &&
         std::binary_search(scratch->begin(), scratch->end(), offset);
}

// That pages say where records start, and that records ascend.
absl::Status Table::VerifyPages() const {
  uint32_t page = 0;  // the next one that no record was seen in
  uint32_t last = 0;
  for (uint32_t offset = 0; offset < shape_.record_bytes;) {
    Record record;
    if (!ReadRecord(offset, &record)) return Damaged("a record is cut off");
    if (record.compact < last) return Damaged("records are out of order");
    last = record.compact;
    const uint32_t in = offset >> kPageShift;
    for (; page <= in; ++page) {
      const uint32_t start = page == in ? offset & (kPageBytes - 1) : kNoStart;
      if (static_cast<uint8_t>(page_starts_[page]) != start ||
          PageBase(page) != record.compact) {
        return Damaged("a page does not say where its first record is");
      }
    }
    offset = SkipNoStart(record.end);
  }
  return absl::OkStatus();
}

absl::Status Table::Verify() const {
  absl::Status status = VerifyPages();
  if (!status.ok()) return status;
  uint64_t symbols = 0;
  std::vector<uint32_t> scratch;
  for (uint32_t segment = 0; segment < segments_.size(); ++segment) {
    Walker walker(*this, segment);
    const auto check = [&](const IndexSymbolView& symbol) {
      ++symbols;
      const Entry& entry = walker.entry();
      return symbol.addr - segments_[segment].base < segments_[segment].span &&
             (entry.is_pad ||
              VerifyRecord(entry.offset, symbol.name, &scratch));
    };
    while (!walker.done()) {
      if (walker.VisitBelow(UINT64_MAX, check)) continue;
      return Damaged(walker.damaged() ? "a name cannot be decoded"
                                      : "a name is not found, or its record "
                                        "lies outside of its segment");
    }
    if (walker.damaged()) return Damaged("a record is cut off");
  }
  if (symbols != shape_.symbols) return Damaged("symbols are missing");
  return absl::OkStatus();
}

}  // namespace ksweep
