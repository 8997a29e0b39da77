// The text of kallsyms: `ADDRESS TYPE NAME` and, for modules, a tab and
// `[MODULE]`. System.map has the same form.

#ifndef KSWEEP_LIB_SOURCE_KALLSYMS_H_
#define KSWEEP_LIB_SOURCE_KALLSYMS_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "ksweep/symbol.h"
#include "lib/base/bytes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ksweep {

// Where a line of a 64-bit kernel has its parts.
inline constexpr size_t kKsymAddrLen = 16;
inline constexpr size_t kKsymTypeColumn = 17;
inline constexpr size_t kKsymNameColumn = 19;

// Reads one line without its newline, with an address of 1 to 16 digits. The
// name is everything up to the tab or the end, blanks included. False for
// anything else.
bool ParseKsymLine(std::string_view line, Symbol* symbol);

// Reads `digits` (at most 16) hexadecimal digits. False if there are others.
bool ParseHex(std::string_view digits, uint64_t* value);

// True for the types that are functions. A table, because nothing foretells
// the next line's.
inline constexpr std::array<bool, 256> kFunctionTypes = [] {
  std::array<bool, 256> types = {};
  for (unsigned char type : {'T', 't', 'W', 'w'}) types[type] = true;
  return types;
}();

inline bool IsFunctionType(char type) {
  return kFunctionTypes[static_cast<unsigned char>(type)];
}

// True if the 16 bytes at `p` are hexadecimal digits: slowly of any case, and
// fast of lower case, which is what kernels write.
bool IsAnyHex16(const char* p);
inline bool IsLowerHex16(const char* p);
inline bool IsHex16(const char* p) { return IsLowerHex16(p) || IsAnyHex16(p); }

#if defined(__SSE2__) && defined(__x86_64__)

inline bool IsLowerHex16(const char* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  // Digits become 0 to 9, letters 0x31 to 0x36, and with the second line 4 to
  // 9; all else is 10 or more in both.
  const __m128i digits = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
  const __m128i letters = _mm_adds_epu8(
      _mm_sub_epi8(digits, _mm_set1_epi8(0x31)), _mm_set1_epi8(4));
  const __m128i values = _mm_min_epu8(digits, letters);
  return _mm_movemask_epi8(_mm_adds_epu8(values, _mm_set1_epi8(0x7f - 9))) == 0;
}

// The value of the 16 digits at `p`, which have to be digits.
inline uint64_t ParseHex16(const char* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i letter = _mm_cmpgt_epi8(bytes, _mm_set1_epi8('9'));
  const __m128i values = _mm_and_si128(
      _mm_add_epi8(bytes, _mm_and_si128(letter, _mm_set1_epi8(9))),
      _mm_set1_epi8(0x0f));
  // The first of two digits is the upper half of a byte.
  const __m128i pairs = _mm_and_si128(
      _mm_or_si128(_mm_slli_epi16(values, 4), _mm_srli_epi16(values, 8)),
      _mm_set1_epi16(0xff));
  return ToBigEndian(
      static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_packus_epi16(pairs, pairs))));
}

#else

inline bool IsLowerHex16(const char* p) {
  for (size_t i = 0; i < kKsymAddrLen; ++i) {
    const char c = p[i];
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  return true;
}

inline uint64_t ParseHex16(const char* p) {
  uint64_t value = 0;
  for (size_t i = 0; i < kKsymAddrLen; ++i) {
    value = value << 4 |
            static_cast<uint64_t>((p[i] & 0x0f) + (p[i] > '9' ? 9 : 0));
  }
  return value;
}

#endif

// True if the parts of a line are where a 64-bit kernel puts them. At least 20
// bytes can be read.
inline bool IsCanonical(const char* begin, const char* end) {
  return end - begin > static_cast<ptrdiff_t>(kKsymNameColumn) &&
         begin[kKsymAddrLen] == ' ' && begin[kKsymNameColumn - 1] == ' ' &&
         IsHex16(begin);
}

// True if the 8 or 16 bytes at `p` are all the digit 0.
inline constexpr uint64_t kZeros8 = 0x3030303030303030ULL;
inline bool IsZero8(const char* p) { return LoadU64(p) == kZeros8; }
inline bool IsZero16(const char* p) { return IsZero8(p) && IsZero8(p + 8); }

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_KALLSYMS_H_
