#include "symindex_answers.h"

#include "absl/strings/str_format.h"
#include "common/json.h"
#include "common/table.h"

namespace examples {
namespace {

// A symbol of an index can be at 0, so no address is "not known" here.
std::string Hex(uint64_t addr) { return absl::StrFormat("%016x", addr); }

void WriteAddr(std::string_view key, uint64_t addr, JsonWriter* json) {
  json->Key(key).String("0x" + Hex(addr));
}

void WriteNumber(std::string_view key, uint64_t number, JsonWriter* json) {
  json->Key(key).Number(number);
}

void WriteNameAndModule(const ksweep::IndexSymbol& symbol, JsonWriter* json) {
  json->Key("name").String(symbol.name);
  json->Key("module");
  symbol.module.empty() ? json->Null() : json->String(symbol.module);
}

void WriteRest(const ksweep::IndexSymbol& symbol, JsonWriter* json) {
  WriteAddr("addr", symbol.addr, json);
  json->Key("type").String({&symbol.type, 1});
  json->Key("size");
  symbol.size == 0 ? json->Null() : json->Number(symbol.size);
}

void WriteSymbols(const IndexSymbols& symbols, JsonWriter* json) {
  json->BeginArray();
  for (const ksweep::IndexSymbol& symbol : symbols) {
    json->BeginObject();
    WriteNameAndModule(symbol, json);
    WriteRest(symbol, json);
    json->EndObject();
  }
  json->EndArray();
}

std::string SizeText(uint64_t size) {
  return size == 0 ? "-" : absl::StrFormat("%d", size);
}

std::string PlaceText(const ksweep::SymbolizedName& symbol) {
  std::string text = Printable(symbol.name);
  absl::StrAppendFormat(&text, "+%#x", symbol.offset);
  if (symbol.size != 0) absl::StrAppendFormat(&text, "/%#x", symbol.size);
  if (!symbol.module.empty()) text += " [" + Printable(symbol.module) + "]";
  return text;
}

struct Figure {
  const char* name;
  uint64_t value;
};

std::vector<Figure> PartFigures(const ksweep::IndexPartStats& part) {
  return {{"symbols", part.symbols},
          {"names", part.names},
          {"folded", part.folded},
          {"owners", part.owners},
          {"name_bytes", part.name_bytes},
          {"page_bytes", part.page_bytes},
          {"locator_bytes", part.locator_bytes},
          {"side_bytes", part.side_bytes},
          {"bytes", part.bytes}};
}

std::vector<Figure> FileFigures(const ksweep::IndexStats& stats) {
  return {{"dictionary_bytes", stats.dictionary_bytes},
          {"btf_bytes", stats.btf_bytes},
          {"modules_btf_bytes", stats.modules_btf_bytes},
          {"header_bytes", stats.header_bytes},
          {"file_bytes", stats.file_bytes},
          {"generation", stats.generation}};
}

void AddFigures(std::string_view part, const std::vector<Figure>& figures,
                Table* table) {
  for (const Figure& figure : figures) {
    table->AddRow({std::string(part), figure.name, WithCommas(figure.value)});
  }
}

void WriteFigures(const std::vector<Figure>& figures, JsonWriter* json) {
  for (const Figure& figure : figures) {
    WriteNumber(figure.name, figure.value, json);
  }
}

void WritePart(std::string_view key, const ksweep::IndexPartStats& part,
               JsonWriter* json) {
  json->Key(key).BeginObject();
  WriteFigures(PartFigures(part), json);
  json->EndObject();
}

}  // namespace

std::string SymbolsText(const IndexSymbols& symbols, bool head) {
  if (symbols.empty()) return "";
  Table table("llrll");
  if (head) table.AddRow({"ADDRESS", "TYPE", "SIZE", "MODULE", "NAME"});
  for (const ksweep::IndexSymbol& symbol : symbols) {
    table.AddRow({Hex(symbol.addr), std::string(1, symbol.type),
                  SizeText(symbol.size), ModuleText(symbol.module),
                  Printable(symbol.name)});
  }
  std::string text;
  table.AppendTo(&text);
  return text;
}

std::string SymbolsJson(const IndexSymbols& symbols) {
  JsonWriter json;
  WriteSymbols(symbols, &json);
  return json.text() + "\n";
}

std::string AddressText(uint64_t addr, const ksweep::Symbolized& found) {
  std::string text = Hex(addr) + "  ";
  if (found.symbols.empty()) return text + "?\n";
  text += PlaceText(found.symbols[0]);
  for (size_t i = 1; i < found.symbols.size(); ++i) {
    text += (i == 1 ? "  also " : ", ") + PlaceText(found.symbols[i]);
  }
  return text + "\n";
}

std::string AddressJson(uint64_t addr, const ksweep::Symbolized& found) {
  JsonWriter json;
  json.BeginObject();
  WriteAddr("address", addr, &json);
  json.Key("symbols").BeginArray();
  for (const ksweep::SymbolizedName& symbol : found.symbols) {
    json.BeginObject();
    WriteNameAndModule(symbol, &json);
    WriteNumber("offset", symbol.offset, &json);
    WriteRest(symbol, &json);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.text() + "\n";
}

std::string BtfJson(std::string_view module, uint32_t id,
                    const IndexSymbols& symbols) {
  JsonWriter json;
  json.BeginObject();
  WriteNumber("btf_id", id, &json);
  json.Key("btf_module");
  module.empty() ? json.Null() : json.String(module);
  json.Key("symbols");
  WriteSymbols(symbols, &json);
  json.EndObject();
  return json.text() + "\n";
}

std::string StatsText(const ksweep::IndexStats& stats) {
  Table table("llr");
  AddFigures("core", PartFigures(stats.core), &table);
  AddFigures("modules", PartFigures(stats.modules), &table);
  AddFigures("file", FileFigures(stats), &table);
  std::string text;
  table.AppendTo(&text);
  absl::StrAppendFormat(
      &text, "build id %s, _stext %s, slide %#x\n",
      stats.build_id.empty() ? "not known" : BuildIdText(stats.build_id),
      stats.stext == 0 ? "not known" : Hex(stats.stext), stats.slide);
  if (stats.own_dictionary) text += "has a dictionary of its own\n";
  if (stats.modules_left_out) {
    text += "its modules are those of another boot, and left out\n";
  }
  return text;
}

std::string StatsJson(const ksweep::IndexStats& stats) {
  JsonWriter json;
  json.BeginObject();
  WritePart("core", stats.core, &json);
  WritePart("modules", stats.modules, &json);
  WriteFigures(FileFigures(stats), &json);
  json.Key("own_dictionary").Bool(stats.own_dictionary);
  json.Key("build_id");
  stats.build_id.empty() ? json.Null()
                         : json.String(BuildIdText(stats.build_id));
  json.Key("stext").Addr(stats.stext);
  WriteAddr("slide", stats.slide, &json);
  json.Key("modules_left_out").Bool(stats.modules_left_out);
  json.EndObject();
  return json.text() + "\n";
}

std::string ErrorJson(std::string_view message) {
  JsonWriter json;
  json.BeginObject();
  json.Key("error").String(message);
  json.EndObject();
  return json.text() + "\n";
}

std::string BuildIdText(std::string_view build_id) {
  std::string text;
  for (const char c : build_id) {
    absl::StrAppendFormat(&text, "%02x", static_cast<uint8_t>(c));
  }
  return text;
}

}  // namespace examples
