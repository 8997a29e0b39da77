// The 4,096 pieces that names are made of. A name is a row of 12-bit codes,
// each the number of a piece.

#ifndef KSWEEP_LIB_INDEX_DICTIONARY_H_
#define KSWEEP_LIB_INDEX_DICTIONARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ksweep {

inline constexpr size_t kCodeBits = 12;
inline constexpr size_t kCodeCnt = size_t{1} << kCodeBits;
inline constexpr uint16_t kCodeMask = kCodeCnt - 1;

// No piece: fills up the last byte of a name's codes.
inline constexpr uint16_t kFillerCode = 0;
// The next code is a byte, for those that no piece has.
inline constexpr uint16_t kEscapeCode = 1;
inline constexpr uint16_t kFirstPiece = 2;

inline constexpr size_t kMaxPieceBytes = 15;
inline constexpr size_t kMaxPieces = kCodeCnt - kFirstPiece;

class Dictionary {
 public:
  // A piece as it is compared and copied: 15 bytes, those behind it zero, and
  // its length. Codes without a piece have length 0.
  struct alignas(16) Slot {
    char bytes[kMaxPieceBytes];
    uint8_t size;
  };
  static_assert(sizeof(Slot) == 16);

  // The one that is compiled in.
  static std::shared_ptr<const Dictionary> BuiltIn();

  // From at most kMaxPieces of 1 to 15 bytes; piece i gets code i + 2.
  explicit Dictionary(absl::Span<const std::string> pieces);

  // From what Pack() made. DataLoss for anything else.
  static absl::StatusOr<std::shared_ptr<const Dictionary>> Unpack(
      std::string_view packed);

  // The pieces' lengths, two a byte, then their bytes one after the other.
  std::string Pack() const;

  const Slot* slots() const { return slots_.data(); }
  std::string_view Piece(uint16_t code) const {
    return {slots_[code].bytes, slots_[code].size};
  }
  bool operator==(const Dictionary& other) const;

 private:
  Dictionary() = default;

  alignas(64) std::array<Slot, kCodeCnt> slots_ = {};
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_DICTIONARY_H_
