#include "lib/index/table_builder.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "lib/base/abseil.h"
#include "lib/index/fold.h"
#include "lib/index/record_writer.h"

namespace ksweep {
namespace {

// The records of each name: the one with the lowest address is located, the
// others are its duplicates.
class NameRecords {
 public:
  explicit NameRecords(size_t records) {
    index_.reserve(records);
    names_.reserve(records);
  }

  void Add(std::string_view name, uint64_t addr, uint32_t offset) {
    const auto [found, is_new] =
        index_.try_emplace(Av(name), static_cast<uint32_t>(names_.size()));
    if (is_new) {
      names_.push_back(name);
      addrs_.push_back(addr);
      offsets_.push_back(offset);
      return;
    }
    const uint32_t i = found->second;
    if (addr < addrs_[i]) {
      std::swap(offset, offsets_[i]);
      addrs_[i] = addr;
    }
    others_[i].push_back(offset);
  }

  Duplicates::Lists MakeDuplicates() {
    Duplicates::Lists lists;
    for (auto& [i, others] : others_) {
      std::sort(others.begin(), others.end());
      lists[offsets_[i]] = std::move(others);
    }
    return lists;
  }

  absl::Span<const std::string_view> names() const { return names_; }
  absl::Span<const uint32_t> offsets() const { return offsets_; }

 private:
  absl::flat_hash_map<absl::string_view, uint32_t> index_;
  std::vector<std::string_view> names_;
  std::vector<uint64_t> addrs_;
  std::vector<uint32_t> offsets_;
  std::map<uint32_t, std::vector<uint32_t>> others_;
};

class TableBuilder {
 public:
  TableBuilder(std::vector<Row> rows, const Dictionary& dictionary)
      : rows_(std::move(rows)),
        writer_(dictionary, rows_.size()),
        names_(rows_.size()) {}

  absl::StatusOr<OwnedTableBytes> Build(
      absl::Span<const std::string_view> owners, const SegmentOptions& options);

 private:
  absl::Status WriteRecords(const Folding& folding);
  void AddType(uint32_t offset, char type);

  std::string& PartOf(TablePart part) {
    return bytes_.parts[static_cast<size_t>(part)];
  }

  std::vector<Row> rows_;
  std::vector<Segment> segments_;
  RecordWriter writer_;
  NameRecords names_;
  char last_type_ = '\0';
  TableShape shape_;
  OwnedTableBytes bytes_;
};

void TableBuilder::AddType(uint32_t offset, char type) {
  std::string& types = PartOf(TablePart::kTypes);
  if (types.empty() || type != last_type_) {
    TypeRuns::Append(offset, type, &types);
    ++shape_.type_runs;
  }
  last_type_ = type;
}

absl::Status TableBuilder::WriteRecords(const Folding& folding) {
  uint32_t segment = UINT32_MAX;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (folding.states[i] == RowState::kFolded) continue;
    const Row& row = rows_[i];
    const Segment& in = segments_[row.segment];
    char type = row.type;
    NewRecord record;
    record.compact = in.compact + static_cast<uint32_t>(row.addr - in.base);
    record.name = row.name;
    record.has_pad = folding.states[i] == RowState::kWithPad;
    record.upper = SplitType(&type);
    absl::StatusOr<uint32_t> offset = writer_.Append(record);
    if (!offset.ok()) return offset.status();
    if (row.segment != segment) {
      segment = row.segment;
      segments_[segment].first_record = *offset;
    }
    AddType(*offset, type);
    names_.Add(row.name, row.addr, *offset);
  }
  writer_.Finish();
  return absl::OkStatus();
}

absl::StatusOr<OwnedTableBytes> TableBuilder::Build(
    absl::Span<const std::string_view> owners, const SegmentOptions& options) {
  absl::StatusOr<std::vector<Segment>> segments = CutSegments(options, &rows_);
  if (!segments.ok()) return segments.status();
  segments_ = *std::move(segments);
  const Folding folding = FoldPads(rows_);
  absl::Status status = WriteRecords(folding);
  if (!status.ok()) return status;
  absl::StatusOr<LocatorBytes> locator =
      BuildLocator(names_.names(), names_.offsets(), writer_.bytes());
  if (!locator.ok()) return locator.status();

  shape_.symbols = rows_.size();
  shape_.folded = folding.folded;
  shape_.names = names_.names().size();
  shape_.record_bytes = writer_.bytes();
  shape_.pad_distance = folding.distance;
  shape_.locator = locator->shape;
  PartOf(TablePart::kShape) = shape_.Pack();
  PartOf(TablePart::kRecords) = writer_.TakeRecords();
  PartOf(TablePart::kPages) = writer_.TakePages();
  PartOf(TablePart::kPilots) = std::move(locator->pilots);
  PartOf(TablePart::kSlots) = std::move(locator->slots);
  PartOf(TablePart::kSegments) = PackSegments(segments_);
  PartOf(TablePart::kDuplicates) = Duplicates::Pack(names_.MakeDuplicates());
  for (std::string_view owner : owners) {
    PartOf(TablePart::kOwners).append(owner).push_back('\0');
  }
  return std::move(bytes_);
}

}  // namespace

TableBytes OwnedTableBytes::Views() const {
  TableBytes views;
  for (size_t i = 0; i < parts.size(); ++i) views[i] = parts[i];
  return views;
}

absl::StatusOr<OwnedTableBytes> BuildTable(
    std::vector<Row> rows, absl::Span<const std::string_view> owners,
    const SegmentOptions& segments, const Dictionary& dictionary) {
  return TableBuilder(std::move(rows), dictionary).Build(owners, segments);
}

}  // namespace ksweep
