// Table: from names to symbols.

#include <algorithm>

#include "lib/index/table_match.h"

namespace ksweep {

// Compares the codes of a record with escapes, and steps over what they match.
bool Table::MatchesLong(const Record& record, const char** name,
                        const char* end) const {
  const uint32_t cnt = record.head & kRefBit ? record.cnt - 2 : record.cnt;
  for (uint32_t i = 0; i < cnt; ++i) {
    const uint16_t code = CodeAt(record.codes, i);
    if (code == kEscapeCode) {
      if (++i == cnt || *name == end) return false;
      const auto byte = static_cast<unsigned char>(**name);
      if (CodeAt(record.codes, i) != byte) return false;
      ++*name;
      continue;
    }
    PieceComparison comparison;
    comparison.Add(slots_[code], *name);
    *name += slots_[code].size;
    if (!comparison.AllSame() || *name > end) return false;
  }
  return true;
}

bool Table::MatchPieces(const Record& record, uint32_t cnt, const char** name,
                        const char* end) const {
  if (record.is_long()) return MatchesLong(record, name, end);
  return MatchCodes(record.codes, cnt, name, end);
}

bool Table::Matches(const Record& record, uint32_t offset,
                    const Query& query) const {
  const char* name = query.data();
  const char* const end = name + query.size();
  if (record.head & kRefBit) {
    Record target;
    return ReadRefTarget(record, offset, &target) &&
           MatchPieces(record, record.cnt - 2, &name, end) &&
           MatchPieces(target, target.cnt, &name, end) && name == end;
  }
  return MatchPieces(record, record.cnt, &name, end) && name == end;
}

bool Table::ReadLongRecord(const char* p, Record* record) const {
  const auto start = static_cast<uint64_t>(p - records_);
  if (start > shape_.record_bytes) return false;
  LeReader reader({p, shape_.record_bytes - start});
  const uint64_t cnt = reader.TakeLeb();
  // Two codes a byte is the most that a name can have.
  if (!reader.ok() || cnt > 2 * kMaxNameBytes + 2) return false;
  record->cnt = static_cast<uint32_t>(cnt);
  record->codes = reader.rest().data();
  record->end =
      static_cast<uint32_t>(record->codes - records_) + CodeBytes(record->cnt);
  return CodeBytes(record->cnt) <= reader.rest().size();
}

LookupState Table::ReadIfMatches(const Query& query, uint64_t offset,
                                 Record* record) const {
  if (offset >= shape_.record_bytes) return LookupState::kAbsent;
  const auto at = static_cast<uint32_t>(offset);
  if (!ReadRecord(at, record)) return LookupState::kDamaged;
  return Matches(*record, at, query) ? LookupState::kFound
                                     : LookupState::kAbsent;
}

[[gnu::noinline]] AddressLookup Table::AddressAtOther(const Query& query,
                                                      uint64_t offset) const {
  Record record;
  const LookupState state = ReadIfMatches(query, offset, &record);
  if (state != LookupState::kFound) return {state, 0};
  return {LookupState::kFound, AddressOfCompact(record.compact)};
}

AddressLookup Table::FindAddress(std::string_view name) const {
  if (NeedsPadSearch(name)) [[unlikely]] {
    const AddressLookup pad = FindPad(name);
    if (pad.state != LookupState::kAbsent) return pad;
  }
  const uint64_t hash = KeyedHash(name, locator_.keys());
  const Query query(name);
  return AddressAt(query, locator_.Lookup(hash));
}

AddressLookup Table::FindPad(std::string_view name) const {
  const std::string_view base = name.substr(kPadPrefix.size());
  Record record;
  const LookupState state = ReadIfMatches(
      Query(base), locator_.Lookup(KeyedHash(base, locator_.keys())), &record);
  if (state != LookupState::kFound) return {state, 0};
  // The lowest of that name, so that its pad is the lowest one.
  if (record.head & kPadBit) [[likely]] {
    return {LookupState::kFound,
            AddressOfCompact(record.compact) - shape_.pad_distance};
  }
  return FindOtherPad(base);
}

AddressLookup Table::FindOtherPad(std::string_view base) const {
  std::vector<uint32_t> offsets;
  const LookupState state = LocateAll(base, &offsets);
  if (state != LookupState::kFound) return {state, 0};
  AddressLookup lowest;
  for (uint32_t offset : offsets) {
    Record record;
    if (!ReadRecord(offset, &record)) return {LookupState::kDamaged, 0};
    if (!(record.head & kPadBit)) continue;
    const uint64_t addr =
        AddressOfCompact(record.compact) - shape_.pad_distance;
    if (!lowest.found() || addr < lowest.addr) {
      lowest = {LookupState::kFound, addr};
    }
  }
  return lowest;
}

// The records of all symbols with that name, ascending.
LookupState Table::LocateAll(std::string_view name,
                             std::vector<uint32_t>* offsets) const {
  const uint64_t offset = locator_.Lookup(KeyedHash(name, locator_.keys()));
  Record record;
  const LookupState state = ReadIfMatches(Query(name), offset, &record);
  if (state != LookupState::kFound) return state;
  const auto first = static_cast<uint32_t>(offset);
  offsets->push_back(first);
  if (!duplicates_.Find(first, shape_.record_bytes, offsets)) {
    return LookupState::kDamaged;
  }
  std::sort(offsets->begin(), offsets->end());
  return state;
}

bool Table::FindAll(std::string_view name, std::vector<Entry>* entries) const {
  std::vector<uint32_t> offsets;
  if (NeedsPadSearch(name)) {
    const std::string_view base = name.substr(kPadPrefix.size());
    if (LocateAll(base, &offsets) == LookupState::kDamaged) return false;
    for (uint32_t offset : offsets) {
      Record record;
      if (!ReadRecord(offset, &record)) return false;
      if (record.head & kPadBit) entries->push_back({offset, true});
    }
    if (!entries->empty()) return true;
    offsets.clear();
  }
  if (LocateAll(name, &offsets) == LookupState::kDamaged) return false;
  for (uint32_t offset : offsets) entries->push_back({offset, false});
  return true;
}

bool Table::AppendLong(const Record& record, uint32_t cnt, char* out,
                       size_t* size) const {
  for (uint32_t i = 0; i < cnt; ++i) {
    const uint16_t code = CodeAt(record.codes, i);
    if (code == kEscapeCode) {
      if (++i == cnt) return false;
      out[(*size)++] = static_cast<char>(CodeAt(record.codes, i));
      continue;
    }
    std::memcpy(out + *size, &slots_[code], sizeof(Dictionary::Slot));
    *size += slots_[code].size;
  }
  return *size <= kMaxNameBytes;
}

// Out of line: few names refer to another.
bool Table::AppendRefName(uint32_t offset, const Record& record, size_t* size,
                          NameBuffer* buffer) const {
  Record target;
  if (!ReadRefTarget(record, offset, &target)) return false;
  if (record.cnt == 3 && !record.is_long()) [[likely]] {
    char* const out = buffer->Prepare(*size + kMaxPieceBytes);
    const Dictionary::Slot& slot = slots_[CodeAt(record.codes, 0)];
    std::memcpy(out + *size, &slot, sizeof(slot));
    *size += slot.size;
  } else if (!AppendPieces(record, record.cnt - 2, size, buffer)) {
    return false;
  }
  return AppendPieces(target, target.cnt, size, buffer);
}

bool Table::Describe(const Entry& entry, NameBuffer* buffer,
                     IndexSymbolView* symbol) const {
  Record record;
  return ReadRecord(entry.offset, &record) &&
         DescribeRecord(entry, record, SegmentOf(record.compact), buffer,
                        symbol);
}

bool Table::DescribeRecord(const Entry& entry, const Record& record,
                           const Segment& segment, NameBuffer* buffer,
                           IndexSymbolView* symbol) const {
  size_t size = kPadPrefix.size();
  buffer->Clear();
  std::memcpy(buffer->Prepare(size), kPadPrefix.data(), size);
  if (!AppendName(entry.offset, record, &size, buffer)) return false;
  const size_t skip = entry.is_pad ? 0 : kPadPrefix.size();
  symbol->name = buffer->View(size).substr(skip);
  symbol->addr = segment.base + (record.compact - segment.compact) -
                 (entry.is_pad ? shape_.pad_distance : 0);
  symbol->type = types_.TypeAt(entry.offset, record.head & kUpperBit);
  symbol->module = owners_[segment.owner];
  return true;
}

bool Table::SlidesAt(const Entry& entry) const {
  Record record;
  return ReadRecord(entry.offset, &record) && SegmentOf(record.compact).slides;
}

bool Table::DescribeWithSize(const Entry& entry, NameBuffer* buffer,
                             IndexSymbolView* symbol) const {
  if (!Describe(entry, buffer, symbol)) return false;
  Record record;
  if (!ReadRecord(entry.offset, &record)) return false;
  const auto segment =
      static_cast<uint32_t>(&SegmentOf(record.compact) - segments_.data());
  Place place;
  if (!FindPlace(segment, symbol->addr, &place)) return false;
  symbol->size = place.size;
  return true;
}

}  // namespace ksweep
