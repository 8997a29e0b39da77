// One table of symbols as it is searched: the core kernel's or the modules'.

#ifndef KSWEEP_LIB_INDEX_TABLE_H_
#define KSWEEP_LIB_INDEX_TABLE_H_

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/symbol_index.h"
#include "lib/index/dictionary.h"
#include "lib/index/fold.h"
#include "lib/index/locator.h"
#include "lib/index/query.h"
#include "lib/index/record.h"
#include "lib/index/segment.h"
#include "lib/index/side_tables.h"

namespace ksweep {

// The parts of a table, each bytes of its own in a file.
enum class TablePart : uint8_t {
  kShape,    // TableShape
  kRecords,  // see record.h; kRecordPadding zeros behind them
  kPages,    // u32 base of each, then u8 where the first record starts
  kPilots,   // see locator.h
  kSlots,
  kSegments,  // see segment.h
  kTypes,     // see side_tables.h
  kDuplicates,
  kOwners,  // names of modules, a NUL behind each
};
inline constexpr size_t kTablePartCnt = 9;

// Views of a table's bytes, wherever they are.
using TableBytes = std::array<std::string_view, kTablePartCnt>;

// What does not follow from the sizes of the parts.
struct TableShape {
  uint64_t symbols = 0;
  uint64_t folded = 0;
  uint64_t names = 0;
  uint32_t record_bytes = 0;  // without the padding
  uint32_t pad_distance = 0;
  uint32_t type_runs = 0;
  LocatorShape locator;

  std::string Pack() const;
  static absl::StatusOr<TableShape> Unpack(std::string_view packed);
};

inline uint32_t PageCnt(uint32_t record_bytes) {
  return record_bytes / kPageBytes + (record_bytes % kPageBytes != 0);
}

// Where to find a symbol in a table: a record, or the pad folded into it.
struct Entry {
  uint32_t offset = 0;
  bool is_pad = false;
};

// Room for a decoded name, used again for the next. Allocates for long ones.
class NameBuffer {
 public:
  // At least `size` bytes, and those of a piece behind them. What was there
  // stays.
  char* Prepare(size_t size) {
    size += sizeof(Dictionary::Slot);
    if (size <= kInline) [[likely]]
      return inline_;
    if (long_.size() < size) long_.resize(2 * size);
    if (!is_long_) std::memcpy(long_.data(), inline_, kInline);
    is_long_ = true;
    return long_.data();
  }
  void Clear() { is_long_ = false; }
  std::string_view View(size_t size) const {
    return {is_long_ ? long_.data() : inline_, size};
  }

 private:
  static constexpr size_t kInline = 1024;

  bool is_long_ = false;
  std::vector<char> long_;
  char inline_[kInline];
};

// All const calls are safe on any bytes: damage shows as a wrong answer or as
// kDamaged, never as a fault. Thread-safe for them.
class Table {
 public:
  // A record's head, and where its codes are.
  struct Record {
    uint32_t compact;
    uint32_t cnt;  // of codes
    uint32_t end;  // offset behind them
    uint8_t head;
    const char* codes;
    bool is_long() const { return (head & kCountBits) == kLongCount; }
  };

  // Longer ones are damage.
  static constexpr size_t kMaxNameBytes =
      std::numeric_limits<uint16_t>::max() + 8;

  Table() = default;

  // DataLoss if the parts do not fit each other. Looks at sizes, and at all of
  // the small parts.
  static absl::StatusOr<Table> Make(
      const TableBytes& bytes, std::shared_ptr<const Dictionary> dictionary);

  // Adds `slide` to the segments that move with `_stext`.
  void Slide(uint64_t slide);

  const TableShape& shape() const { return shape_; }
  const TableBytes& bytes() const { return bytes_; }
  const std::vector<Segment>& segments() const { return segments_; }
  absl::Span<const std::string_view> owners() const { return owners_; }
  const Locator& locator() const { return locator_; }

  // The address of the lowest symbol of that name.
  AddressLookup FindAddress(std::string_view name) const;
  // The same for many names: result i is for name i. There are as many of both.
  void FindAddresses(absl::Span<const std::string_view> names,
                     absl::Span<AddressLookup> results) const;

  // Appends every symbol of that name, in the order of segments and addresses.
  // False if the table is damaged.
  bool FindAll(std::string_view name, std::vector<Entry>* entries) const;

  // What is around an address within a segment.
  struct Place {
    uint32_t segment = 0;
    uint64_t addr = 0;  // the highest start of a symbol not above it
    uint64_t size = 0;  // 0: not known
    absl::InlinedVector<Entry, 4> entries;  // symbols that start there
    Record record;                          // of the first of them
  };

  // Fills in all but the size. False if the table is damaged. The view of the
  // name is in `buffer`.
  bool Describe(const Entry& entry, NameBuffer* buffer,
                IndexSymbolView* symbol) const;
  // The same for the first entry of a place.
  bool DescribeFirst(const Place& place, NameBuffer* buffer,
                     IndexSymbolView* symbol) const {
    return DescribeRecord(place.entries[0], place.record,
                          segments_[place.segment], buffer, symbol);
  }
  // And that.
  bool DescribeWithSize(const Entry& entry, NameBuffer* buffer,
                        IndexSymbolView* symbol) const;

  // Whether the entry moves with `_stext`.
  bool SlidesAt(const Entry& entry) const;

  // Calls `visit` for each segment that holds `addr`. False if the table is
  // damaged.
  bool ForPlaces(uint64_t addr,
                 absl::FunctionRef<void(const Place&)> visit) const;

  // Every symbol of a segment in address order, and of one address records
  // before pads. Reads each record once, a batch of them at a time.
  class Walker {
   public:
    Walker(const Table& table, uint32_t segment);

    // Whether there are no more; also if the table is damaged.
    bool done() const { return next_ == ready_; }
    bool damaged() const { return damaged_; }
    // Of the next symbol.
    uint64_t addr() const { return base_ + items_[next_].compact; }

    // Calls `visit` with the symbols at addr(), then with all below `limit`.
    // False if that returned false, or if the table is damaged.
    bool VisitBelow(uint64_t limit,
                    absl::FunctionRef<bool(const IndexSymbolView&)> visit);
    // Of the symbol that is visited.
    Entry entry() const { return {items_[next_].offset, items_[next_].is_pad}; }

   private:
    static constexpr size_t kBatch = 64;

    // A symbol: a record, or the pad folded into it.
    struct Item {
      Record record;
      uint32_t offset;   // of the record
      uint32_t compact;  // of the symbol
      uint32_t size;
      bool is_pad;

      uint64_t Key() const { return uint64_t{compact} << 1 | is_pad; }
    };

    void Refill();
    void DropVisited();
    void ReadRecords(size_t cnt);
    void PutInPlace(Item* last);
    void Sort();
    void SetReady();
    void SetSizes();
    size_t EndBelow(uint64_t limit) const;
    bool Decode(const Item& item);

    const Table* table_;
    const Segment* segment_;
    uint64_t base_;  // added to a compact address
    uint32_t next_offset_;
    uint32_t last_compact_;  // of the last record read
    bool ended_ = false;     // all records are read
    bool damaged_ = false;
    // Sorted by Key(), up to end_. Those before next_ have been visited. In
    // front of those from ready_ on, symbols may be missing.
    std::vector<Item> items_;
    size_t next_ = 0, ready_ = 0, end_ = 0;
    bool sorted_ = true;
    TypeRuns::Cursor types_;
    // A name is often that of the pad before, so it is decoded once, behind
    // room for the prefix.
    NameBuffer buffer_;
    uint32_t decoded_ = UINT32_MAX;  // offset of its record
    std::string_view padded_name_;   // as that of the pad
  };

  // The numbers of the segments by the address that they start at.
  absl::Span<const uint32_t> segments_by_base() const {
    return finder_.by_base();
  }

  // Whether every name and place is where the table says. Slow.
  absl::Status Verify() const;

 private:
  class Batch;

  bool ReadRecord(uint32_t offset, Record* record) const;
  bool ReadLongRecord(const char* p, Record* record) const;
  bool ReadRefTarget(const Record& record, uint32_t offset,
                     Record* target) const;
  bool Matches(const Record& record, uint32_t offset, const Query& query) const;
  bool MatchPieces(const Record& record, uint32_t cnt, const char** name,
                   const char* end) const;
  bool MatchesLong(const Record& record, const char** name,
                   const char* end) const;
  bool MatchCodes(const char* codes, uint32_t cnt, const char** name,
                  const char* end) const;
  size_t AppendShort(const char* codes, uint32_t cnt, char* out) const;
  bool AppendLong(const Record& record, uint32_t cnt, char* out,
                  size_t* size) const;
  bool AppendPieces(const Record& record, uint32_t cnt, size_t* size,
                    NameBuffer* buffer) const;
  bool AppendRefName(uint32_t offset, const Record& record, size_t* size,
                     NameBuffer* buffer) const;
  bool AppendName(uint32_t offset, const Record& record, size_t* size,
                  NameBuffer* buffer) const;

  bool DescribeRecord(const Entry& entry, const Record& record,
                      const Segment& segment, NameBuffer* buffer,
                      IndexSymbolView* symbol) const;

  uint32_t PageBase(uint32_t page) const {
    return LoadLe<uint32_t>(page_bases_ + 4 * size_t{page});
  }
  const Segment& SegmentOf(uint32_t compact) const;
  uint64_t AddressOfCompact(uint32_t compact) const {
    if (compact - largest_.compact < largest_.span) [[likely]] {
      return largest_.base + (compact - largest_.compact);
    }
    const Segment& segment = SegmentOf(compact);
    return segment.base + (compact - segment.compact);
  }
  // The slot whose place in bytes these bits hold; the others do not matter.
  const Dictionary::Slot& SlotOf(uint64_t place) const {
    return *reinterpret_cast<const Dictionary::Slot*>(
        reinterpret_cast<const char*>(slots_) +
        (place & kCodeMask * sizeof(Dictionary::Slot)));
  }
  void NoteSegments();
  void NotePages();
  bool NeedsPadSearch(std::string_view name) const {
    return shape_.pad_distance != 0 && IsPadName(name);
  }
  // `offset` is what the locator says.
  AddressLookup AddressAt(const Query& query, uint64_t offset) const;
  AddressLookup AddressAtOther(const Query& query, uint64_t offset) const;
  AddressLookup FindPad(std::string_view name) const;
  AddressLookup FindOtherPad(std::string_view base) const;
  LookupState ReadIfMatches(const Query& query, uint64_t offset,
                            Record* record) const;
  LookupState LocateAll(std::string_view name,
                        std::vector<uint32_t>* offsets) const;
  // The first record that matters for `compact`: of those with the highest
  // address not above it, or of `page`. False if the table is damaged.
  uint32_t SkipInPage(uint32_t page, uint32_t at, uint32_t delta,
                      uint32_t* offset) const;
  bool SkipTo(uint32_t page, uint64_t compact, uint32_t* offset) const;
  // Walks over the records from the first one of `page`. `*again` is set if
  // some of the symbols at place->addr may be in front of it.
  bool CollectPlace(uint32_t page, uint64_t compact, Place* place,
                    bool* again) const;
  // The same in fewer steps for most places. False if this is none of them.
  bool FindPlainPlace(uint32_t page, uint64_t compact, Place* place) const;
  bool FindPlace(uint32_t segment, uint64_t addr, Place* place) const;
  // The number of pages whose base is below, or not above, `compact`.
  uint32_t PagesBelow(uint64_t compact) const;
  bool VerifyRecord(uint32_t offset, std::string_view name,
                    std::vector<uint32_t>* scratch) const;
  absl::Status VerifyPages() const;

  TableShape shape_;
  TableBytes bytes_;
  std::shared_ptr<const Dictionary> dictionary_;
  const Dictionary::Slot* slots_ = nullptr;
  const char* records_ = nullptr;
  const char* page_bases_ = nullptr;
  const char* page_starts_ = nullptr;
  uint32_t page_cnt_ = 0;
  // The number of pages with a base below each multiple of 2^directory_shift_.
  static constexpr uint32_t kDirectorySize = 8192;
  std::vector<uint32_t> directory_;
  unsigned directory_shift_ = 0;
  Locator locator_;
  std::vector<Segment> segments_;
  Segment largest_;  // a copy: most symbols are in it
  SegmentFinder finder_;
  TypeRuns types_;
  Duplicates duplicates_;
  std::vector<std::string_view> owners_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_TABLE_H_
