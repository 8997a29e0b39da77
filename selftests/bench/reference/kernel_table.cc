#include "selftests/bench/reference/kernel_table.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>

namespace ksweep::bench {
namespace {

// The table is for real kernels. What its format cannot hold ends the program.
void DieUnless(bool fits, const char* what) {
  if (fits) return;
  std::fprintf(stderr, "the kernel's table cannot hold %s\n", what);
  std::exit(2);
}

// With the type in front, as they are compressed.
PackedNames Pack(const std::vector<CoreSymbol>& symbols) {
  constexpr size_t kMostBytes = 511;  // KSYM_NAME_LEN without the NUL
  PackedNames packed;
  for (const CoreSymbol& symbol : symbols) {
    DieUnless(symbol.name.size() <= kMostBytes, "a name this long");
    packed.begins.push_back(static_cast<uint32_t>(packed.bytes.size()));
    packed.lens.push_back(static_cast<uint16_t>(symbol.name.size() + 1));
    packed.bytes.push_back(static_cast<uint8_t>(symbol.type));
    packed.bytes.insert(packed.bytes.end(), symbol.name.begin(),
                        symbol.name.end());
  }
  return packed;
}

std::vector<uint32_t> OrderByName(const std::vector<CoreSymbol>& symbols) {
  std::vector<uint32_t> order(symbols.size());
  std::iota(order.begin(), order.end(), uint32_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&symbols](uint32_t a, uint32_t b) {
                     return symbols[a].name < symbols[b].name;
                   });
  return order;
}

void AppendBigEndian24(uint32_t value, std::vector<uint8_t>* out) {
  DieUnless(value < 1u << 24, "as many symbols or bytes");
  for (int shift = 16; shift >= 0; shift -= 8) {
    out->push_back(static_cast<uint8_t>(value >> shift));
  }
}

void MakeReadableBehind(std::vector<uint8_t>* bytes) {
  bytes->resize(bytes->size() + kReadableBehind);
}

}  // namespace

TokenTable::TokenTable(const Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    index[i] = static_cast<uint16_t>(text.size());
    text.insert(text.end(), tokens[i].begin(), tokens[i].end());
    text.push_back('\0');
  }
  DieUnless(text.size() <= std::numeric_limits<uint16_t>::max(),
            "tokens this long");
}

Offsets::Offsets(const std::vector<CoreSymbol>& symbols) {
  constexpr uint64_t kMostAbsolute = std::numeric_limits<int32_t>::max();
  uint64_t lowest = std::numeric_limits<uint64_t>::max();
  uint64_t highest = 0;
  for (const CoreSymbol& symbol : symbols) {
    has_absolute_ |= symbol.addr <= kMostAbsolute;
    if (symbol.addr > kMostAbsolute) lowest = std::min(lowest, symbol.addr);
    highest = std::max(highest, symbol.addr);
  }
  base_ = lowest;
  const uint64_t most =
      has_absolute_ ? kMostAbsolute : std::numeric_limits<uint32_t>::max();
  DieUnless(highest <= kMostAbsolute || highest - lowest <= most,
            "addresses this far apart");
  for (const CoreSymbol& symbol : symbols) {
    if (!has_absolute_) {
      offsets_.push_back(static_cast<int32_t>(symbol.addr - base_));
    } else if (symbol.addr <= kMostAbsolute) {
      offsets_.push_back(static_cast<int32_t>(symbol.addr));
    } else {
      offsets_.push_back(static_cast<int32_t>(base_ - 1 - symbol.addr));
    }
  }
}

CompressedNames::CompressedNames(const std::vector<CoreSymbol>& symbols)
    : names(Pack(symbols)),
      tokens(Compress(&names)),
      order(OrderByName(symbols)) {}

InlineLengths::InlineLengths(const CompressedNames& names) {
  for (size_t i = 0; i < names.names.begins.size(); ++i) {
    const TokenSpan tokens = names.names.Get(i);
    begins_.push_back(static_cast<uint32_t>(bytes_.size()));
    DieUnless(tokens.size() < 1 << 14, "a name this long");
    if (tokens.size() < 0x80) {
      bytes_.push_back(static_cast<uint8_t>(tokens.size()));
    } else {
      bytes_.push_back(static_cast<uint8_t>(tokens.size() | 0x80));
      bytes_.push_back(static_cast<uint8_t>(tokens.size() >> 7));
    }
    bytes_.insert(bytes_.end(), tokens.begin(), tokens.end());
  }
  MakeReadableBehind(&bytes_);
}

template <int kShift>
Markers<kShift>::Markers(const std::vector<uint32_t>& begins) {
  for (size_t i = 0; i < begins.size(); i += size_t{1} << kShift) {
    markers_.push_back(begins[i]);
  }
}

template class Markers<8>;
template class Markers<4>;

TwoLevelMarkers::TwoLevelMarkers(const std::vector<uint32_t>& begins) {
  for (size_t i = 0; i < begins.size(); i += 16) {
    if (i % 256 == 0) coarse_.push_back(begins[i]);
    const uint32_t above = begins[i] - coarse_.back();
    DieUnless(above <= std::numeric_limits<uint16_t>::max(),
              "256 names in 64 KiB, with markers of 16 bits");
    fine_.push_back(static_cast<uint16_t>(above));
  }
}

SummedNames::SummedNames(const CompressedNames& names)
    : cnt_(names.names.begins.size()) {
  for (size_t i = 0; i < cnt_; ++i) {
    const TokenSpan tokens = names.names.Get(i);
    DieUnless(tokens.size() <= 0xff, "a name this long, with length bytes");
    if (i % 16 == 0) {
      AppendBigEndian24(static_cast<uint32_t>(bytes_.size()), &markers_);
    }
    lens_.push_back(static_cast<uint8_t>(tokens.size()));
    bytes_.insert(bytes_.end(), tokens.begin(), tokens.end());
  }
  MakeReadableBehind(&lens_);
  MakeReadableBehind(&markers_);
}

ByteSeqs::ByteSeqs(const std::vector<uint32_t>& order) {
  for (uint32_t seq : order) AppendBigEndian24(seq, &bytes_);
  MakeReadableBehind(&bytes_);
}

PackedSeqs::PackedSeqs(const std::vector<uint32_t>& order)
    : bits_(static_cast<size_t>(
          std::bit_width(order.empty() ? 0 : order.size() - 1))),
      bytes_((order.size() * bits_ + 7) / 8) {
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t k = 0; k < bits_; ++k) {
      const size_t bit = i * bits_ + k;
      bytes_[bit / 8] |= static_cast<uint8_t>((order[i] >> k & 1) << bit % 8);
    }
  }
  MakeReadableBehind(&bytes_);
}

}  // namespace ksweep::bench
