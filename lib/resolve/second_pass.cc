#include "lib/resolve/second_pass.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "lib/resolve/address_set.h"
#include "lib/resolve/symbol_name.h"
#include "lib/source/kallsyms.h"
#include "lib/source/line_reader.h"

namespace ksweep {
namespace {

using OwnerNumbers = absl::flat_hash_map<std::string_view, uint32_t>;

OwnerNumbers NumberOwners(const SweepResult& result) {
  OwnerNumbers numbers;
  for (uint32_t i = 0; i < result.owners.size(); ++i) {
    numbers.emplace(result.owners[i], i);
  }
  return numbers;
}

// Calls visit(symbol, owner) for each function that could be a target.
absl::Status ForEachFunction(
    ListFile* kallsyms, const SweepResult& result,
    absl::FunctionRef<void(const Symbol&, uint32_t)> visit) {
  absl::Status status = kallsyms->Rewind();
  if (!status.ok()) return status;
  const OwnerNumbers numbers = NumberOwners(result);
  const bool stop = false;
  return ReadLines(
      kallsyms,
      [&](std::string_view line) {
        Symbol symbol;
        if (!ParseKsymLine(line, &symbol) || !IsFunctionType(symbol.type) ||
            IsNeverTarget(symbol.name) || IsPseudoOwner(symbol.module)) {
          return;
        }
        const auto owner = numbers.find(symbol.module);
        // An owner that has come since has no rows.
        if (owner != numbers.end()) visit(symbol, owner->second);
      },
      &stop);
}

}  // namespace

absl::Status CompleteAliases(ListFile* kallsyms, SweepResult* result) {
  using Place = std::pair<uint64_t, uint32_t>;
  using Known = std::tuple<uint64_t, uint32_t, char, std::string_view>;
  absl::flat_hash_set<Place> places;
  absl::flat_hash_set<Known> known;
  std::vector<uint64_t> addrs;
  for (const SymbolRow& row : result->rows) {
    if (row.addr == 0) continue;
    places.emplace(row.addr, row.owner);
    known.emplace(row.addr, row.owner, row.type, row.name());
    addrs.push_back(row.addr);
  }
  const AddressSet wanted(std::move(addrs));
  return ForEachFunction(
      kallsyms, *result, [&](const Symbol& symbol, uint32_t owner) {
        if (!wanted.Contains(symbol.addr) ||
            !places.contains(Place(symbol.addr, owner)) ||
            known.contains(
                Known(symbol.addr, owner, symbol.type, symbol.name))) {
          return;
        }
        SymbolRow row;
        row.addr = symbol.addr;
        row.name_data = result->text.Copy(symbol.name).data();
        row.name_len = static_cast<uint32_t>(symbol.name.size());
        row.owner = owner;
        row.type = symbol.type;
        known.emplace(row.addr, row.owner, row.type, row.name());
        result->rows.push_back(row);
      });
}

void NameCounts::Add(uint32_t owner, std::string_view name) {
  ++by_owner_[Key(name, owner)];
  ++total_[name];
}

absl::StatusOr<NameCounts> NameCounts::Make(ListFile* kallsyms,
                                            const SweepResult& result,
                                            bool rows_are_complete) {
  NameCounts counts;
  if (rows_are_complete) {
    for (const SymbolRow& row : result.rows) {
      counts.Add(row.owner, StripLlvm(row.name()));
    }
    return counts;
  }
  for (const SymbolRow& row : result.rows) {
    counts.total_[StripLlvm(row.name())] = 0;
  }
  absl::Status status = ForEachFunction(
      kallsyms, result, [&counts](const Symbol& symbol, uint32_t owner) {
        const auto found = counts.total_.find(StripLlvm(symbol.name));
        if (found != counts.total_.end()) counts.Add(owner, found->first);
      });
  if (!status.ok()) return status;
  return counts;
}

uint32_t NameCounts::Of(uint32_t owner, std::string_view name) const {
  const auto found = by_owner_.find(Key(StripLlvm(name), owner));
  return found == by_owner_.end() ? 0 : found->second;
}

uint32_t NameCounts::Total(std::string_view name) const {
  const auto found = total_.find(StripLlvm(name));
  return found == total_.end() ? 0 : found->second;
}

}  // namespace ksweep
