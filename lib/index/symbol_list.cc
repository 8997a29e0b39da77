#include "lib/index/symbol_list.h"

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/source/kallsyms.h"

namespace ksweep {
namespace {

constexpr std::string_view kStext = "_stext";
constexpr std::string_view kEnd = "_end";

}  // namespace

bool IsMappingSymbol(std::string_view name) {
  return name.size() >= 2 && name[0] == '$' &&
         std::string_view("adtx").find(name[1]) != std::string_view::npos &&
         (name.size() == 2 || name[2] == '.');
}

uint32_t SymbolList::OwnerOf(std::string_view module) {
  const auto [found, is_new] = owner_numbers_.try_emplace(
      std::string(module), static_cast<uint32_t>(owners_.size()));
  if (is_new) owners_.push_back(arena_.Copy(module));
  return found->second;
}

void SymbolList::NoteAddress(const Symbol& symbol) {
  ++seen_;
  nonzero_ += symbol.addr != 0;
  if (!IsFunctionType(symbol.type)) return;
  ++functions_;
  if (symbol.addr != 0) return;
  if (zero_functions_++ == 0) first_zero_ = arena_.Copy(symbol.name);
}

void SymbolList::NoteMark(const Symbol& symbol) {
  if (!symbol.module.empty()) return;
  if (symbol.name == kStext) stext_ = symbol.addr;
  if (symbol.name == kEnd) end_ = symbol.addr;
}

absl::Status SymbolList::Add(const Symbol& symbol) {
  if (symbol.name.empty() || symbol.name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a name of %d bytes; an index holds names of 1 to %d",
                        symbol.name.size(), kMaxNameBytes));
  }
  if (symbol.module.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError("a module's name has a zero byte");
  }
  NoteAddress(symbol);
  NoteMark(symbol);
  if (IsMappingSymbol(symbol.name)) return absl::OkStatus();
  if (symbol.module.empty() && keep_ == Keep::kModulesOnly) {
    return absl::OkStatus();
  }
  Row row;
  row.addr = symbol.addr;
  row.name = arena_.Copy(symbol.name);
  row.type = symbol.type;
  if (symbol.module.empty()) {
    core_.push_back(row);
  } else {
    row.owner = OwnerOf(symbol.module);
    modules_.push_back(row);
  }
  return absl::OkStatus();
}

absl::Status SymbolList::AddLine(std::string_view line, uint64_t number) {
  Symbol symbol;
  absl::Status status =
      ParseKsymLine(line, &symbol)
          ? Add(symbol)
          : absl::InvalidArgumentError(
                "not of the form ADDRESS TYPE NAME, with a tab and [MODULE]");
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrFormat("line %d: %s", number, status.message()));
}

absl::Status SymbolList::AddText(std::string_view text) {
  for (uint64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    absl::Status status = AddLine(text.substr(0, end), number);
    if (!status.ok()) return status;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return absl::OkStatus();
}

}  // namespace ksweep
