#include <cstring>

#include "selftests/bench/reference/kernel_table.h"
#include "selftests/bench/reference/name_table.h"

namespace ksweep::bench {
namespace {

// std::strcmp(name, what `tokens` stand for).
int CompareOnTheFly(const TokenTable& table, TokenSpan tokens,
                    const char* name) {
  size_t skip = 1;  // the type
  for (uint8_t token : tokens) {
    for (const char* p = table.Get(token) + skip; *p != '\0'; ++p, ++name) {
      const int difference =
          static_cast<unsigned char>(*name) - static_cast<unsigned char>(*p);
      if (difference != 0) return difference;
    }
    skip = 0;
  }
  return static_cast<unsigned char>(*name);
}

struct Expanded {
  static int Compare(const TokenTable& table, TokenSpan tokens,
                     const char* name) {
    char buffer[kNameBuffer];
    Expand(table, tokens, buffer);
    return std::strcmp(name, buffer);
  }
};

struct OnTheFly {
  static int Compare(const TokenTable& table, TokenSpan tokens,
                     const char* name) {
    return CompareOnTheFly(table, tokens, name);
  }
};

template <typename Names, typename Seqs, typename Comparison>
class Table final : public KernelNameTable {
 public:
  Table(const std::vector<CoreSymbol>& symbols, const CompressedNames& names)
      : tokens_(names.tokens),
        offsets_(symbols),
        names_(names),
        seqs_(names.order) {}

  void Find(absl::Span<const std::string_view> names,
            uint64_t* addrs) const override {
    for (size_t i = 0; i < names.size(); ++i) {
      addrs[i] = FindOne(names[i].data());
    }
  }

  void Symbolize(absl::Span<const uint64_t> addrs,
                 absl::FunctionRef<void(const Place&)> visit) const override {
    char buffer[kNameBuffer];
    for (uint64_t addr : addrs) {
      const size_t pos = PosOf(addr);
      const size_t len = Expand(tokens_, names_.Get(pos), buffer);
      visit({{buffer, len}, addr - offsets_.AddrOf(pos), SizeOf(pos)});
    }
  }

  void ForEach(absl::FunctionRef<void(uint64_t, char, std::string_view)> visit)
      const override {
    char buffer[kNameBuffer];
    size_t pos = 0;
    names_.ForEach([&](TokenSpan tokens) {
      const size_t len = Expand(tokens_, tokens, buffer);
      visit(offsets_.AddrOf(pos++), *tokens_.Get(tokens[0]), {buffer, len});
      return true;
    });
  }

  KernelBytes bytes() const override {
    return {names_.names_bytes(), names_.markers_bytes(), tokens_.bytes(),
            offsets_.bytes(), seqs_.bytes()};
  }

 private:
  int CompareAt(size_t i, const char* name) const {
    return Comparison::Compare(tokens_, names_.Get(seqs_.Get(i)), name);
  }

  // As the kernel does it: any of the symbols that have the name, then back to
  // the first.
  uint64_t FindOne(const char* name) const {
    size_t low = 0;
    size_t high = offsets_.size();
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      const int order = CompareAt(middle, name);
      if (order == 0) return FirstOf(middle, name);
      if (order > 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return kNoAddr;
  }

  uint64_t FirstOf(size_t i, const char* name) const {
    while (i > 0 && CompareAt(i - 1, name) == 0) --i;
    return offsets_.AddrOf(seqs_.Get(i));
  }

  size_t PosOf(uint64_t addr) const {
    size_t low = 0;
    size_t high = offsets_.size();
    while (high - low > 1) {
      const size_t middle = low + (high - low) / 2;
      if (offsets_.AddrOf(middle) <= addr) {
        low = middle;
      } else {
        high = middle;
      }
    }
    const uint64_t start = offsets_.AddrOf(low);
    while (low > 0 && offsets_.AddrOf(low - 1) == start) --low;
    return low;
  }

  uint64_t SizeOf(size_t pos) const {
    const uint64_t start = offsets_.AddrOf(pos);
    for (size_t next = pos + 1; next < offsets_.size(); ++next) {
      const uint64_t addr = offsets_.AddrOf(next);
      if (addr > start) return addr - start;
    }
    return 0;
  }

  TokenTable tokens_;
  Offsets offsets_;
  Names names_;
  Seqs seqs_;
};

template <typename Names, typename Seqs>
std::unique_ptr<KernelNameTable> MakeWith(
    KernelCompare compare, const std::vector<CoreSymbol>& symbols,
    const CompressedNames& names) {
  if (compare == KernelCompare::kExpanded) {
    return std::make_unique<Table<Names, Seqs, Expanded>>(symbols, names);
  }
  return std::make_unique<Table<Names, Seqs, OnTheFly>>(symbols, names);
}

template <typename Names>
std::unique_ptr<KernelNameTable> MakeWith(
    KernelForm form, const std::vector<CoreSymbol>& symbols,
    const CompressedNames& names) {
  switch (form.seqs) {
    case KernelSeqs::kBytes:
      return MakeWith<Names, ByteSeqs>(form.compare, symbols, names);
    case KernelSeqs::kWord:
      return MakeWith<Names, WordSeqs>(form.compare, symbols, names);
    case KernelSeqs::kPacked:
      return MakeWith<Names, PackedSeqs>(form.compare, symbols, names);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<KernelNameTable> MakeKernelTable(
    KernelForm form, const std::vector<CoreSymbol>& symbols,
    const CompressedNames& names) {
  switch (form.names) {
    case KernelNames::kEvery256:
      return MakeWith<WalkedNames<Markers<8>>>(form, symbols, names);
    case KernelNames::kEvery16:
      return MakeWith<WalkedNames<Markers<4>>>(form, symbols, names);
    case KernelNames::kTwoLevel:
      return MakeWith<WalkedNames<TwoLevelMarkers>>(form, symbols, names);
    case KernelNames::kSummed:
      return MakeWith<SummedNames>(form, symbols, names);
  }
  return nullptr;
}

}  // namespace ksweep::bench
