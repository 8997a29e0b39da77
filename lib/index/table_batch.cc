// Table: from many names to addresses. What one name waits for is fetched while
// others are worked on.

#include <array>

#include "lib/index/table_match.h"

namespace ksweep {
namespace {

// Names that are looked up at once: enough to hide the time of a fetch, few
// enough to stay in the first cache.
constexpr size_t kBatch = 64;

}  // namespace

// Up to kBatch names, none of which needs a second search.
class Table::Batch {
 public:
  explicit Batch(const Table& table) : table_(table) {}

  void Add(std::string_view name, AddressLookup* result) {
    Item& item = items_[cnt_++];
    const uint64_t hash = KeyedHash(name, table_.locator_.keys());
    item.query.Set(name);
    item.hash = hash;
    item.result = result;
    __builtin_prefetch(table_.locator_.PilotOf(hash));
  }

  bool full() const { return cnt_ == kBatch; }

  void Run() {
    const Locator& locator = table_.locator_;
    for (size_t i = 0; i < cnt_; ++i) {
      Item& item = items_[i];
      item.place = locator.SlotOf(
          item.hash, static_cast<uint8_t>(*locator.PilotOf(item.hash)));
      __builtin_prefetch(locator.SlotBytes(item.place));
    }
    for (size_t i = 0; i < cnt_; ++i) {
      Item& item = items_[i];
      item.place = locator.ValueAt(item.place, item.hash);
      Prefetch(item.place);
    }
    for (size_t i = 0; i < cnt_; ++i) {
      *items_[i].result = table_.AddressAt(items_[i].query, items_[i].place);
    }
    cnt_ = 0;
  }

 private:
  struct Item {
    uint64_t hash;
    uint64_t place;  // the locator's slot, then what is in it
    AddressLookup* result;
    Query query;
  };

  // Compilers find a call of this of no use unless it is inline.
  [[gnu::always_inline]] void Prefetch(uint64_t offset) const {
    if (offset >= table_.shape_.record_bytes) offset = 0;
    __builtin_prefetch(table_.records_ + offset);
    __builtin_prefetch(table_.records_ + offset + 16);
    __builtin_prefetch(table_.page_bases_ + 4 * (offset >> kPageShift));
  }

  const Table& table_;
  size_t cnt_ = 0;
  std::array<Item, kBatch> items_;
};

void Table::FindAddresses(absl::Span<const std::string_view> names,
                          absl::Span<AddressLookup> results) const {
  if (locator_.empty()) {
    std::fill(results.begin(), results.end(), AddressLookup());
    return;
  }
  Batch batch(*this);
  for (size_t i = 0; i < names.size(); ++i) {
    if (NeedsPadSearch(names[i])) [[unlikely]] {
      results[i] = FindAddress(names[i]);
    } else {
      batch.Add(names[i], &results[i]);
      if (batch.full()) batch.Run();
    }
  }
  batch.Run();
}

}  // namespace ksweep
