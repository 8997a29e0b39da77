#include "lib/index/walk.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace ksweep {
namespace {

// The symbols of a segment, those of one address at once.
class Groups {
 public:
  Groups(const Table& table, uint32_t number)
      : table_(&table),
        segment_(&table.segments()[number]),
        cursor_(table, number) {
    more_ = cursor_.Next();
    Next();
  }

  // False at the end.
  bool Next() {
    items_.clear();
    if (!more_) return false;
    addr_ = cursor_.addr();
    do {
      items_.push_back({cursor_.entry(), cursor_.record()});
      more_ = cursor_.Next();
    } while (more_ && cursor_.addr() == addr_);
    if (more_) {
      size_ = cursor_.addr() - addr_;
    } else {
      const uint64_t end = segment_->base + segment_->extent;
      size_ = segment_->known_end ? end - addr_ : 0;
    }
    return true;
  }

  bool empty() const { return items_.empty(); }
  uint64_t addr() const { return addr_; }
  bool damaged() const { return cursor_.damaged(); }

  // Calls `visit` with each of them; `*damaged` tells why it stopped if not
  // because `visit` returned false.
  template <typename Visit>
  bool VisitEach(NameBuffer* buffer, Visit visit, bool* damaged) {
    for (const Item& item : items_) {
      IndexSymbolView symbol;
      if (!table_->DescribeRecord(item.entry, item.record, *segment_, buffer,
                                  &symbol, &hint_)) {
        *damaged = true;
        return false;
      }
      symbol.size = size_;
      if (!visit(symbol)) return false;
    }
    return true;
  }

 private:
  struct Item {
    Entry entry;
    Table::Record record;
  };

  const Table* table_;
  const Segment* segment_;
  Table::Cursor cursor_;
  bool more_ = false;
  uint64_t addr_ = 0;
  uint64_t size_ = 0;
  absl::InlinedVector<Item, 4> items_;
  TypeRuns::Hint hint_;
};

struct WaitingSegment {
  uint64_t base;
  uint32_t table;
  uint32_t number;

  auto Key() const { return std::tie(base, table, number); }
};

class Walk {
 public:
  explicit Walk(absl::Span<const Table* const> tables) : tables_(tables) {
    for (uint32_t table = 0; table < tables.size(); ++table) {
      const std::vector<Segment>& segments = tables[table]->segments();
      for (uint32_t i = 0; i < segments.size(); ++i) {
        waiting_.push_back({segments[i].base, table, i});
      }
    }
    std::sort(waiting_.begin(), waiting_.end(),
              [](const WaitingSegment& a, const WaitingSegment& b) {
                return a.Key() < b.Key();
              });
  }

  // False if a table is damaged.
  bool Run(absl::FunctionRef<bool(const IndexSymbolView&)> visit) {
    while (!damaged_) {
      if (open_.empty()) {
        if (next_ == waiting_.size()) return true;
        Open();
        continue;
      }
      // Few segments overlap, if any: looking at all is quick.
      size_t first = 0;
      for (size_t i = 1; i < open_.size(); ++i) {
        if (open_[i].addr() < open_[first].addr()) first = i;
      }
      if (next_ < waiting_.size() &&
          waiting_[next_].base <= open_[first].addr()) {
        Open();
        continue;
      }
      bool damaged = false;
      if (!open_[first].VisitEach(&buffer_, visit, &damaged)) return !damaged;
      if (open_[first].Next()) continue;
      if (open_[first].damaged()) return false;
      open_.erase(open_.begin() + static_cast<ptrdiff_t>(first));
    }
    return false;
  }

 private:
  void Open() {
    const WaitingSegment& segment = waiting_[next_++];
    Groups groups(*tables_[segment.table], segment.number);
    damaged_ |= groups.damaged();
    if (!groups.empty()) open_.push_back(std::move(groups));
  }

  absl::Span<const Table* const> tables_;
  std::vector<WaitingSegment> waiting_;
  size_t next_ = 0;
  bool damaged_ = false;
  std::vector<Groups> open_;
  NameBuffer buffer_;
};

}  // namespace

bool WalkTables(absl::Span<const Table* const> tables,
                absl::FunctionRef<bool(const IndexSymbolView&)> visit) {
  return Walk(tables).Run(visit);
}

}  // namespace ksweep
