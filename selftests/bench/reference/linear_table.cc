#include <cstring>

#include "selftests/bench/reference/kernel_table.h"
#include "selftests/bench/reference/name_table.h"

namespace ksweep::bench {
namespace {

class LinearTable final : public NameTable {
 public:
  LinearTable(const std::vector<CoreSymbol>& symbols,
              const CompressedNames& names)
      : tokens_(names.tokens), offsets_(symbols), names_(names) {}

  void Find(absl::Span<const std::string_view> names,
            uint64_t* addrs) const override {
    for (size_t i = 0; i < names.size(); ++i) {
      addrs[i] = FindOne(names[i].data());
    }
  }

 private:
  uint64_t FindOne(const char* name) const {
    char buffer[kNameBuffer];
    uint64_t addr = kNoAddr;
    size_t pos = 0;
    names_.ForEach([&](TokenSpan tokens) {
      Expand(tokens_, tokens, buffer);
      if (std::strcmp(buffer, name) == 0) addr = offsets_.AddrOf(pos);
      ++pos;
      return addr == kNoAddr;
    });
    return addr;
  }

  TokenTable tokens_;
  Offsets offsets_;
  WalkedNames<Markers<8>> names_;
};

}  // namespace

std::unique_ptr<NameTable> MakeLinearTable(
    const std::vector<CoreSymbol>& symbols, const CompressedNames& names) {
  return std::make_unique<LinearTable>(symbols, names);
}

}  // namespace ksweep::bench
