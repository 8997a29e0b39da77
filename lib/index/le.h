// Little-endian numbers in a file's bytes, on any machine.

#ifndef KSWEEP_LIB_INDEX_LE_H_
#define KSWEEP_LIB_INDEX_LE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace ksweep {

template <typename T>
inline T LoadLe(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof(value));
  if constexpr (std::endian::native == std::endian::little) return value;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  return value;
}

template <typename T>
inline void StoreLe(T value, char* p) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    p[i] = static_cast<char>(value >> (8 * i));
  }
}

template <typename T>
inline void AppendLe(T value, std::string* out) {
  char bytes[sizeof(T)];
  StoreLe(value, bytes);
  out->append(bytes, sizeof(T));
}

// LEB128: seven bits a byte, the lowest first, the top bit on all but the last.
inline void AppendLeb(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) {
    out->push_back(static_cast<char>(value | 0x80));
  }
  out->push_back(static_cast<char>(value));
}

// Takes numbers off the front of bytes. Past their end, and after a LEB128 of
// more than 64 bits, the numbers are 0 and ok() is false.
class LeReader {
 public:
  explicit LeReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Take() {
    if (rest_.size() < sizeof(T)) return Fail();
    const T value = LoadLe<T>(rest_.data());
    rest_.remove_prefix(sizeof(T));
    return value;
  }

  uint64_t TakeLeb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const uint8_t byte = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return static_cast<uint64_t>(Fail());
  }

  std::string_view TakeBytes(uint64_t size) {
    if (size > rest_.size()) {
      Fail();
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  bool ok() const { return ok_; }
  std::string_view rest() const { return rest_; }

 private:
  uint8_t Fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_LE_H_
