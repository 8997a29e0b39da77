#include "lib/index/walk.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace ksweep {
namespace {

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
        if (open_[i]->addr() < open_[first]->addr()) first = i;
      }
      Table::Walker& walker = *open_[first];
      if (next_ < waiting_.size() && waiting_[next_].base <= walker.addr()) {
        Open();
        continue;
      }
      if (!walker.VisitBelow(LimitOf(first), visit)) return !walker.damaged();
      if (walker.done()) {
        open_.erase(open_.begin() + static_cast<ptrdiff_t>(first));
      }
    }
    return false;
  }

 private:
  void Open() {
    const WaitingSegment& segment = waiting_[next_++];
    auto walker = std::make_unique<Table::Walker>(*tables_[segment.table],
                                                  segment.number);
    damaged_ |= walker->damaged();
    if (!walker->done()) open_.push_back(std::move(walker));
  }

  // Where another segment than that of open_[number] goes on.
  uint64_t LimitOf(size_t number) const {
    uint64_t limit =
        next_ < waiting_.size() ? waiting_[next_].base : UINT64_MAX;
    for (size_t i = 0; i < open_.size(); ++i) {
      if (i != number) limit = std::min(limit, open_[i]->addr());
    }
    return limit;
  }

  absl::Span<const Table* const> tables_;
  std::vector<WaitingSegment> waiting_;
  size_t next_ = 0;
  bool damaged_ = false;
  std::vector<std::unique_ptr<Table::Walker>> open_;
};

}  // namespace

bool WalkTables(absl::Span<const Table* const> tables,
                absl::FunctionRef<bool(const IndexSymbolView&)> visit) {
  return Walk(tables).Run(visit);
}

}  // namespace ksweep
