#include "lib/index/dictionary.h"

#include <cstring>

#include "absl/status/status.h"
#include "lib/index/dictionary_data.h"

namespace ksweep {
namespace {

constexpr size_t kPackedLengths = kCodeCnt / 2;

size_t LengthAt(std::string_view packed, size_t code) {
  const uint8_t pair = static_cast<uint8_t>(packed[code / 2]);
  return code % 2 == 0 ? pair & 0x0f : pair >> 4;
}

}  // namespace

Dictionary::Dictionary(absl::Span<const std::string> pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    Slot& slot = slots_[kFirstPiece + i];
    slot.size = static_cast<uint8_t>(pieces[i].size());
    std::memcpy(slot.bytes, pieces[i].data(), slot.size);
  }
}

std::shared_ptr<const Dictionary> Dictionary::BuiltIn() {
  static const std::shared_ptr<const Dictionary> built_in =
      *Unpack(BuiltInDictionaryBytes());
  return built_in;
}

absl::StatusOr<std::shared_ptr<const Dictionary>> Dictionary::Unpack(
    std::string_view packed) {
  if (packed.size() < kPackedLengths) {
    return absl::DataLossError("the dictionary is cut off");
  }
  const std::shared_ptr<Dictionary> dictionary(new Dictionary);
  std::string_view bytes = packed.substr(kPackedLengths);
  for (size_t code = 0; code < kCodeCnt; ++code) {
    const size_t size = LengthAt(packed, code);
    if (size > bytes.size() || (code < kFirstPiece && size != 0)) {
      return absl::DataLossError("the dictionary's lengths do not fit");
    }
    Slot& slot = dictionary->slots_[code];
    slot.size = static_cast<uint8_t>(size);
    std::memcpy(slot.bytes, bytes.data(), size);
    bytes.remove_prefix(size);
  }
  if (!bytes.empty()) {
    return absl::DataLossError("the dictionary has more bytes than pieces");
  }
  return std::shared_ptr<const Dictionary>(dictionary);
}

std::string Dictionary::Pack() const {
  std::string packed(kPackedLengths, '\0');
  for (size_t code = 0; code < kCodeCnt; ++code) {
    const unsigned size = slots_[code].size;
    packed[code / 2] = static_cast<char>(
        static_cast<uint8_t>(packed[code / 2]) | size << (code % 2 * 4));
  }
  for (uint16_t code = 0; code < kCodeCnt; ++code) packed += Piece(code);
  return packed;
}

bool Dictionary::operator==(const Dictionary& other) const {
  return std::memcmp(slots_.data(), other.slots_.data(), sizeof(slots_)) == 0;
}

}  // namespace ksweep
