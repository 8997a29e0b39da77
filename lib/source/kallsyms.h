// The text of kallsyms: `ADDRESS TYPE NAME` and, for modules, a tab and
// `[MODULE]`. System.map has the same form.

#ifndef KSWEEP_LIB_SOURCE_KALLSYMS_H_
#define KSWEEP_LIB_SOURCE_KALLSYMS_H_

#include <cstdint>
#include <cstring>
#include <string_view>

#include "ksweep/symbol.h"
#include "lib/base/hash.h"

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

// True for the types that are functions.
inline bool IsFunctionType(char type) {
  return type == 'T' || type == 't' || type == 'W' || type == 'w';
}

// True if the 16 bytes at `p` are hexadecimal digits.
inline bool IsHex16(const char* p) {
#if defined(__SSE2__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
  const auto within = [](__m128i v, char low, char high) {
    return _mm_and_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8(low - 1)),
                         _mm_cmplt_epi8(v, _mm_set1_epi8(high + 1)));
  };
  const __m128i hex =
      _mm_or_si128(within(bytes, '0', '9'), within(lower, 'a', 'f'));
  return _mm_movemask_epi8(hex) == 0xffff;
#else
  for (size_t i = 0; i < kKsymAddrLen; ++i) {
    const char c = p[i] | 0x20;
    if (!((p[i] >= '0' && p[i] <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  return true;
#endif
}

// True if the 16 bytes at `p` are all the digit 0.
inline bool IsZero16(const char* p) {
  constexpr uint64_t kZeros = 0x3030303030303030ULL;
  return ((LoadU64(p) ^ kZeros) | (LoadU64(p + 8) ^ kZeros)) == 0;
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_KALLSYMS_H_
