// How a name is compared with a record; for the files that find names.

#ifndef KSWEEP_LIB_INDEX_TABLE_MATCH_H_
#define KSWEEP_LIB_INDEX_TABLE_MATCH_H_

#include <algorithm>
#include <array>

#include "lib/index/piece_compare.h"
#include "lib/index/table_records.h"

namespace ksweep {

// Of the codes that are read whether they are there or not, those of a name of
// so many. The others become kFillerCode, an empty piece.
struct CodesMask {
  uint64_t first_five;
  uint64_t sixth;
};
inline constexpr std::array<CodesMask, kCountBits + 1> kCodesMasks = [] {
  std::array<CodesMask, kCountBits + 1> masks = {};
  for (unsigned cnt = 0; cnt < masks.size(); ++cnt) {
    const unsigned bits = std::min(cnt, 5u) * kCodeBits;
    masks[cnt] = {(uint64_t{1} << bits) - 1,
                  cnt > 5 ? uint64_t{kCodeMask} << 4 : 0};
  }
  return masks;
}();

// Compares codes with what is at `*name`, and steps over it. Few names have
// more than six, so that these are compared without a branch.
[[gnu::always_inline]] inline bool Table::MatchCodes(const char* codes,
                                                     uint32_t cnt,
                                                     const char** name,
                                                     const char* end) const {
  static_assert(kUnconditionalCodes == 6);
  static_assert((kUnconditionalCodes + 1) * kMaxPieceBytes + 1 <=
                Query::kReadableBehind);
  PieceComparison comparison;
  const char* at = *name;
  const auto add = [&comparison, &at](const Dictionary::Slot& slot) {
    comparison.Add(slot, at);
    at += slot.size;
  };
  const CodesMask& mask = kCodesMasks[cnt & kCountBits];
  const uint64_t five = LoadLe<uint64_t>(codes) & mask.first_five;
  add(SlotOf(five << 4));
  add(SlotOf(five >> 8));
  add(SlotOf(five >> 20));
  add(SlotOf(five >> 32));
  add(SlotOf(five >> 44));
  add(SlotOf(LoadLe<uint16_t>(codes + 7) & mask.sixth));
  if (cnt > kUnconditionalCodes) [[unlikely]] {
    codes += CodeBytes(kUnconditionalCodes);
    for (cnt -= kUnconditionalCodes; cnt >= 2 && at <= end;
         cnt -= 2, codes += 3) {
      const uint32_t two = LoadLe<uint32_t>(codes);
      add(SlotOf(two << 4));
      add(SlotOf(two >> 8));
    }
    if (at > end) return false;
    if (cnt != 0) add(slots_[LoadLe<uint16_t>(codes) & kCodeMask]);
  }
  *name = at;
  // What is behind the end was compared, too, but does not count.
  return at <= end && comparison.AllSame();
}

// The records that most names have: with a near address, few codes, and no ref.
[[gnu::always_inline]] inline AddressLookup Table::AddressAt(
    const Query& query, uint64_t offset) const {
  if (offset >= shape_.record_bytes) return {};
  const char* const p = records_ + offset;
  const uint32_t delta = LoadLe<uint16_t>(p);
  const uint32_t head = static_cast<uint8_t>(p[2]);
  static_assert(kLongCount == kCountBits && kRefBit > kCountBits);
  if (delta == kFarDelta || (head & (kRefBit | kCountBits)) >= kLongCount)
      [[unlikely]] {
    return AddressAtOther(query, offset);
  }
  const uint32_t compact =
      PageBase(static_cast<uint32_t>(offset >> kPageShift)) + delta;
  const char* name = query.data();
  const char* const end = name + query.size();
  if (!MatchCodes(p + 3, head & kCountBits, &name, end) || name != end) {
    return {};
  }
  return {LookupState::kFound, AddressOfCompact(compact)};
}

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_TABLE_MATCH_H_
