// The symbol table that the kernel's build makes and /proc/kallsyms is read
// from (Linux v6.12, scripts/kallsyms.c and kernel/kallsyms.c), byte for byte,
// and variants of its parts.
//
// A name is its type character and itself, written as tokens with a length in
// front. A marker says where every 256th name begins; from there on names are
// walked over. A permutation of 24-bit numbers has the names in order.

#ifndef KSWEEP_SELFTESTS_BENCH_REFERENCE_KERNEL_TABLE_H_
#define KSWEEP_SELFTESTS_BENCH_REFERENCE_KERNEL_TABLE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "selftests/bench/reference/core_symbols.h"
#include "selftests/bench/reference/pair_tokens.h"
#include "selftests/bench/reference/word_access.h"

namespace ksweep::bench {

// Readable behind each array, as other data of the kernel would be there. No
// part of the sizes.
inline constexpr size_t kReadableBehind = 16;

// What each token stands for, NUL-terminated.
struct TokenTable {
  std::vector<char> text;
  std::array<uint16_t, kTokenCnt> index = {};

  explicit TokenTable(const Tokens& tokens);
  const char* Get(uint8_t token) const { return text.data() + index[token]; }
  uint64_t bytes() const { return text.size() + sizeof(index); }
};

// A name's tokens, the type's included.
using TokenSpan = absl::Span<const uint8_t>;

// Long enough for what the tokens of any name stand for, and a NUL.
inline constexpr size_t kNameBuffer = 512;

inline size_t Finish(const char* begin, char* end) {
  *end = '\0';
  return static_cast<size_t>(end - begin);
}

// Writes the name, without the type, and a NUL, kNameBuffer bytes at most;
// returns its length. Looks for the end of the buffer at each byte, as the
// kernel does.
inline size_t Expand(const TokenTable& table, TokenSpan tokens, char* out) {
  char* const begin = out;
  size_t room = kNameBuffer;
  bool type_skipped = false;
  for (uint8_t token : tokens) {
    for (const char* p = table.Get(token); *p != '\0'; ++p) {
      if (!type_skipped) {
        type_skipped = true;
        continue;
      }
      if (room <= 1) return Finish(begin, out);
      *out++ = *p;
      --room;
    }
  }
  return Finish(begin, out);
}

// Addresses in 32 bits: above a base, or, if they do not fit there, absolute
// ones as they are and the others below zero, which is how it was done with
// absolute per-CPU symbols (up to Linux v6.14).
class Offsets {
 public:
  explicit Offsets(const std::vector<CoreSymbol>& symbols);

  uint64_t AddrOf(size_t pos) const {
    const int32_t offset = offsets_[pos];
    if (!has_absolute_) return base_ + static_cast<uint32_t>(offset);
    if (offset >= 0) return static_cast<uint64_t>(offset);
    return base_ - 1 - static_cast<uint64_t>(int64_t{offset});
  }
  size_t size() const { return offsets_.size(); }
  uint64_t bytes() const { return size() * sizeof(int32_t); }

 private:
  uint64_t base_ = 0;
  bool has_absolute_ = false;
  std::vector<int32_t> offsets_;
};

// The names and the order they have. Variants are made from this.
struct CompressedNames {
  PackedNames names;  // type and name, as tokens
  Tokens tokens;
  std::vector<uint32_t> order;  // positions, by name

  explicit CompressedNames(const std::vector<CoreSymbol>& symbols);
};

// --- where a name is ---

// Names with a length of one or two bytes in front, as the kernel has them.
class InlineLengths {
 public:
  explicit InlineLengths(const CompressedNames& names);

  // The tokens of the name at `offset`, and where the next begins.
  TokenSpan At(size_t offset) const {
    const uint8_t* const at = bytes_.data() + offset;
    if ((at[0] & 0x80) == 0) return {at + 1, at[0]};
    return {at + 2, static_cast<size_t>(at[0] & 0x7f) | size_t{at[1]} << 7};
  }
  size_t Next(size_t offset) const {
    const TokenSpan tokens = At(offset);
    return static_cast<size_t>(tokens.data() + tokens.size() - bytes_.data());
  }
  const std::vector<uint32_t>& begins() const { return begins_; }
  uint64_t bytes() const { return bytes_.size() - kReadableBehind; }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> begins_;  // of every name, to make markers of; no part
};

// A marker of 32 bits for every 2^kShift names.
template <int kShift>
class Markers {
 public:
  explicit Markers(const std::vector<uint32_t>& begins);

  size_t OffsetOf(const InlineLengths& names, size_t pos) const {
    size_t offset = markers_[pos >> kShift];
    for (size_t i = pos & ((1 << kShift) - 1); i > 0; --i) {
      offset = names.Next(offset);
    }
    return offset;
  }
  uint64_t bytes() const { return markers_.size() * sizeof(uint32_t); }

 private:
  std::vector<uint32_t> markers_;
};

// A marker of 32 bits for every 256 names, and one of 16 bits above it for
// every 16.
class TwoLevelMarkers {
 public:
  explicit TwoLevelMarkers(const std::vector<uint32_t>& begins);

  size_t OffsetOf(const InlineLengths& names, size_t pos) const {
    size_t offset = coarse_[pos >> 8] + fine_[pos >> 4];
    for (size_t i = pos & 15; i > 0; --i) offset = names.Next(offset);
    return offset;
  }
  uint64_t bytes() const {
    return coarse_.size() * sizeof(uint32_t) + fine_.size() * sizeof(uint16_t);
  }

 private:
  std::vector<uint32_t> coarse_;
  std::vector<uint16_t> fine_;
};

// InlineLengths with markers.
template <typename M>
class WalkedNames {
 public:
  explicit WalkedNames(const CompressedNames& names)
      : names_(names), markers_(names_.begins()) {}

  TokenSpan Get(size_t pos) const {
    return names_.At(markers_.OffsetOf(names_, pos));
  }
  // Calls visit(tokens) with each name in turn, until it returns false.
  template <typename Visit>
  void ForEach(Visit visit) const {
    size_t offset = 0;
    for (size_t i = names_.begins().size(); i > 0; --i) {
      if (!visit(names_.At(offset))) return;
      offset = names_.Next(offset);
    }
  }
  uint64_t names_bytes() const { return names_.bytes(); }
  uint64_t markers_bytes() const { return markers_.bytes(); }

 private:
  InlineLengths names_;
  M markers_;
};

// The lengths in an array of their own, so that those of up to 15 names are
// added at once, and a marker of 24 bits for every 16 names.
class SummedNames {
 public:
  explicit SummedNames(const CompressedNames& names);

  TokenSpan Get(size_t pos) const {
    const size_t group = pos / 16;
    const size_t begin = LoadBigEndian32(markers_.data() + 3 * group) >> 8;
    const size_t before = SumOfFirst(lens_.data() + 16 * group, pos % 16);
    return {bytes_.data() + begin + before, lens_[pos]};
  }
  template <typename Visit>
  void ForEach(Visit visit) const {
    const uint8_t* at = bytes_.data();
    for (size_t i = 0; i < cnt_; ++i) {
      if (!visit(TokenSpan(at, lens_[i]))) return;
      at += lens_[i];
    }
  }
  uint64_t names_bytes() const { return bytes_.size() + cnt_; }
  uint64_t markers_bytes() const { return markers_.size() - kReadableBehind; }

 private:
  size_t cnt_;
  std::vector<uint8_t> bytes_;
  std::vector<uint8_t> lens_;
  std::vector<uint8_t> markers_;
};

// --- the order of names ---

// 24 bits each, the highest first, put together byte by byte.
class ByteSeqs {
 public:
  explicit ByteSeqs(const std::vector<uint32_t>& order);

  size_t Get(size_t i) const {
    size_t seq = 0;
    for (size_t k = 0; k < 3; ++k) seq = seq << 8 | bytes_[3 * i + k];
    return seq;
  }
  uint64_t bytes() const { return bytes_.size() - kReadableBehind; }

 protected:
  std::vector<uint8_t> bytes_;
};

// The same bytes, read as one word.
class WordSeqs : public ByteSeqs {
 public:
  using ByteSeqs::ByteSeqs;

  size_t Get(size_t i) const {
    return LoadBigEndian32(bytes_.data() + 3 * i) >> 8;
  }
};

// As few bits each as the count of symbols takes.
class PackedSeqs {
 public:
  explicit PackedSeqs(const std::vector<uint32_t>& order);

  size_t Get(size_t i) const {
    const size_t bit = i * bits_;
    return LoadLittleEndian64(bytes_.data() + bit / 8) >> bit % 8 &
           ((uint64_t{1} << bits_) - 1);
  }
  uint64_t bytes() const { return bytes_.size() - kReadableBehind; }

 private:
  size_t bits_;
  std::vector<uint8_t> bytes_;
};

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_REFERENCE_KERNEL_TABLE_H_
