// What symindex found, as lines for people or as JSON.

#ifndef KSWEEP_EXAMPLES_SYMINDEX_ANSWERS_H_
#define KSWEEP_EXAMPLES_SYMINDEX_ANSWERS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ksweep/symbol_index.h"

namespace examples {

using IndexSymbols = std::vector<ksweep::IndexSymbol>;

// ADDRESS TYPE SIZE MODULE NAME, with or without a head; nothing if there is no
// symbol.
std::string SymbolsText(const IndexSymbols& symbols, bool head);
// [{"name", "module", "addr", "type", "size"}, …]
std::string SymbolsJson(const IndexSymbols& symbols);

// ADDRESS NAME+OFFSET/SIZE [MODULE], the aliases behind it. One line; of an
// address that belongs to no symbol "?".
std::string AddressText(uint64_t addr, const ksweep::Symbolized& found);
// {"address", "symbols": [{"name", "module", "offset", …}, …]}
std::string AddressJson(uint64_t addr, const ksweep::Symbolized& found);

// {"btf_id", "btf_module", "symbols": […]}
std::string BtfJson(std::string_view module, uint32_t id,
                    const IndexSymbols& symbols);

std::string StatsText(const ksweep::IndexStats& stats);
std::string StatsJson(const ksweep::IndexStats& stats);

// {"error": …}
std::string ErrorJson(std::string_view message);

// Hexadecimal.
std::string BuildIdText(std::string_view build_id);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_SYMINDEX_ANSWERS_H_
