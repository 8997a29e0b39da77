#include <map>

#include "selftests/bench/reference/name_table.h"

namespace ksweep::bench {
namespace {

class TreeTable final : public NameTable {
 public:
  explicit TreeTable(const std::vector<CoreSymbol>& symbols) {
    for (const CoreSymbol& symbol : symbols) {
      addrs_.emplace(symbol.name, symbol.addr);  // the first one stays
    }
  }

  void Find(absl::Span<const std::string_view> names,
            uint64_t* addrs) const override {
    for (size_t i = 0; i < names.size(); ++i) {
      const auto found = addrs_.find(names[i]);
      addrs[i] = found == addrs_.end() ? kNoAddr : found->second;
    }
  }

 private:
  std::map<std::string, uint64_t, std::less<>> addrs_;
};

}  // namespace

std::unique_ptr<NameTable> MakeTreeTable(
    const std::vector<CoreSymbol>& symbols) {
  return std::make_unique<TreeTable>(symbols);
}

}  // namespace ksweep::bench
