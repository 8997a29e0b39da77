#include "ksweep/symbol_index.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"
#include "lib/base/glob.h"
#include "lib/index/index_data.h"
#include "lib/index/index_file.h"
#include "lib/index/read_symbols.h"
#include "lib/index/slide.h"
#include "lib/index/walk.h"
#include "lib/source/build_id.h"
#include "lib/source/kallsyms.h"

namespace ksweep {

struct SymbolIndex::Rep {
  IndexData data;
};

namespace {

absl::Status Damaged() {
  return absl::DataLossError("the symbol index is damaged; build it anew");
}

IndexSymbol Owned(const IndexSymbolView& view) {
  IndexSymbol symbol;
  symbol.addr = view.addr;
  symbol.size = view.size;
  symbol.type = view.type;
  symbol.name = std::string(view.name);
  symbol.module = std::string(view.module);
  return symbol;
}

bool AppendSymbols(const Table& table, std::string_view name,
                   std::vector<IndexSymbol>* symbols) {
  std::vector<Entry> entries;
  if (!table.FindAll(name, &entries)) return false;
  NameBuffer buffer;
  const size_t before = symbols->size();
  for (const Entry& entry : entries) {
    IndexSymbolView symbol;
    if (!table.DescribeWithSize(entry, &buffer, &symbol)) return false;
    symbols->push_back(Owned(symbol));
  }
  std::stable_sort(symbols->begin() + static_cast<ptrdiff_t>(before),
                   symbols->end(),
                   [](const IndexSymbol& a, const IndexSymbol& b) {
                     return a.addr < b.addr;
                   });
  return true;
}

int TypeRank(char type) {
  switch (type) {
    case 'T':
      return 0;
    case 'W':
    case 'w':
      return 1;
    case 't':
      return 2;
    default:
      return 3;
  }
}

// Whether `a` is the better answer to what is at an address.
template <typename Name>
bool IsBetter(const Name& a, const Name& b) {
  const auto key = [](const Name& s) {
    return std::make_tuple(s.size == 0, s.offset, TypeRank(s.type),
                           s.name.size());
  };
  if (key(a) != key(b)) return key(a) < key(b);
  return a.name < b.name;
}

struct SymbolizedView : IndexSymbolView {
  uint64_t offset = 0;
};

// Calls `visit` with every symbol that holds `addr`. False if the index is
// damaged.
bool ForHolders(const IndexData& data, uint64_t addr,
                const SymbolizeOptions& options,
                absl::FunctionRef<void(const SymbolizedView&)> visit) {
  // 0 stands for "no function" wherever addresses are reported.
  if (addr == 0) return true;
  bool ok = true;
  NameBuffer buffer;
  for (const Table* table : data.tables()) {
    if (table->segments().empty()) continue;
    ok &= table->ForPlaces(addr, [&](const Table::Place& place) {
      for (size_t i = 0; i < place.entries.size(); ++i) {
        SymbolizedView symbol;
        ok &= i == 0 ? table->DescribeFirst(place, &buffer, &symbol)
                     : table->Describe(place.entries[i], &buffer, &symbol);
        if (!ok) return;
        if (options.functions_only && !IsFunctionType(symbol.type)) continue;
        symbol.size = place.size;
        symbol.offset = addr - place.addr;
        visit(symbol);
      }
    });
  }
  return ok;
}

void Assign(const SymbolizedView& view, SymbolizedName* symbol) {
  symbol->addr = view.addr;
  symbol->size = view.size;
  symbol->type = view.type;
  symbol->offset = view.offset;
  symbol->name.assign(view.name);
  if (!view.module.empty() || !symbol->module.empty()) {
    symbol->module.assign(view.module);
  }
}

IndexPartStats StatsOf(const Table& table) {
  const auto bytes_of = [&table](TablePart part) {
    return uint64_t{table.bytes()[static_cast<size_t>(part)].size()};
  };
  IndexPartStats stats;
  stats.symbols = table.shape().symbols;
  stats.names = table.shape().names;
  stats.folded = table.shape().folded;
  stats.name_bytes = bytes_of(TablePart::kRecords);
  stats.page_bytes = bytes_of(TablePart::kPages);
  stats.locator_bytes =
      bytes_of(TablePart::kPilots) + bytes_of(TablePart::kSlots);
  for (std::string_view part : table.bytes()) stats.bytes += part.size();
  stats.side_bytes =
      stats.bytes - stats.name_bytes - stats.page_bytes - stats.locator_bytes;
  return stats;
}

// What the kernel says of itself besides its symbols.
BuildFacts FactsOf(const KernelFiles& files) {
  BuildFacts facts;
  facts.build_id = KernelBuildId(files);
  facts.boot_id = KernelBootId(files);
  facts.knows_modules = true;
  return facts;
}

absl::Status Relocate(const OpenOptions& options, IndexData* data) {
  if (options.relocation == Relocation::kAsBuilt) return absl::OkStatus();
  bool keep_modules = false;
  if (options.relocation == Relocation::kToStext) {
    if (!data->info.has_stext) {
      return absl::FailedPreconditionError(
          "the index has no '_stext' to count from");
    }
    SlideIndexData(options.stext - data->info.stext, data);
  } else {
    absl::StatusOr<uint64_t> slide = FindSlide(*data, options.kernel);
    if (!slide.ok()) return slide.status();
    SlideIndexData(*slide, data);
    keep_modules = data->modules_info.has_value() &&
                   !data->modules_info->boot_id.empty() &&
                   data->modules_info->boot_id == KernelBootId(options.kernel);
  }
  if (data->modules_info.has_value() && !keep_modules) {
    data->modules_left_out = true;
    data->modules_info.reset();
    data->modules = {};
    data->modules_btf = {};
  }
  return absl::OkStatus();
}

// The modules of a kernel that has its `_stext` elsewhere belong to another
// boot than the core's addresses.
absl::Status CheckSameBoot(const SymbolList& list, const IndexData& data) {
  if (!list.stext().has_value() || !data.info.has_stext ||
      *list.stext() == data.info.stext + data.slide) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "the kernel has its '_stext' at %#x, the index has it at %#x: open the "
      "index for that kernel first",
      *list.stext(), data.info.stext + data.slide));
}

absl::StatusOr<IndexData> WithModulesOf(SymbolList* list, BuildFacts facts,
                                        const IndexData& old) {
  absl::Status status = CheckAddresses(*list);
  if (status.ok()) status = CheckSameBoot(*list, old);
  if (!status.ok()) return status;
  IndexData data = old;
  facts.generation =
      old.modules_info.has_value() ? old.modules_info->generation + 1 : 1;
  status = ReplaceModules(list, facts, BuildOptions().tail_bytes, &data);
  if (!status.ok()) return status;
  return data;
}

absl::Status AddElfBtf(ElfSource elf, const BuildOptions& options,
                       IndexData* data) {
  if (!elf.module.empty()) {
    return AddModuleBtf(elf.module, std::move(elf.btf), options.btf, data);
  }
  if (!options.btf.empty()) return AddBtf(options.btf, data);
  if (absl::IsNotFound(elf.btf.status())) return absl::OkStatus();
  return elf.btf.ok() ? AddBtf(*std::move(elf.btf), data) : elf.btf.status();
}

// Of a list that holds no BTF.
absl::StatusOr<IndexData> BuildWithBtf(SymbolList* list,
                                       const BuildOptions& options,
                                       const BuildFacts& facts) {
  absl::StatusOr<IndexData> data = BuildIndexData(list, options, facts);
  if (!data.ok() || options.btf.empty()) return data;
  absl::Status status = AddBtf(options.btf, &*data);
  if (!status.ok()) return status;
  return data;
}

// The functions among `symbols`, and of these the ones of `module`.
void KeepFunctionsOf(std::string_view module,
                     std::vector<IndexSymbol>* symbols) {
  symbols->erase(std::remove_if(symbols->begin(), symbols->end(),
                                [module](const IndexSymbol& s) {
                                  return !IsFunctionType(s.type) ||
                                         s.module != module;
                                }),
                 symbols->end());
}

absl::StatusOr<std::vector<IndexSymbol>> FunctionsOf(const BtfIds& ids,
                                                     uint32_t id,
                                                     const Table& table,
                                                     std::string_view module) {
  const std::optional<uint32_t> offset = ids.Find(id);
  std::vector<IndexSymbol> symbols;
  if (!offset.has_value()) return symbols;
  NameBuffer buffer;
  IndexSymbolView symbol;
  if (*offset >= table.shape().record_bytes ||
      !table.Describe({*offset, false}, &buffer, &symbol) ||
      !AppendSymbols(table, symbol.name, &symbols)) {
    return Damaged();
  }
  KeepFunctionsOf(module, &symbols);
  return symbols;
}

}  // namespace

SymbolIndex::SymbolIndex() : SymbolIndex(*FromText("")) {}
SymbolIndex::SymbolIndex(std::shared_ptr<const Rep> rep)
    : rep_(std::move(rep)) {}
SymbolIndex::SymbolIndex(const SymbolIndex&) = default;
SymbolIndex& SymbolIndex::operator=(const SymbolIndex&) = default;
SymbolIndex::SymbolIndex(SymbolIndex&&) noexcept = default;
SymbolIndex& SymbolIndex::operator=(SymbolIndex&&) noexcept = default;
SymbolIndex::~SymbolIndex() = default;

absl::StatusOr<SymbolIndex> SymbolIndex::FromKernel(
    const KernelFiles& files, const BuildOptions& options) {
  SymbolList list;
  absl::Status status = ReadKallsyms(files, &list);
  if (!status.ok()) return status;
  absl::StatusOr<IndexData> data = BuildWithBtf(&list, options, FactsOf(files));
  if (!data.ok()) return data.status();
  return SymbolIndex(std::make_shared<const Rep>(Rep{*std::move(data)}));
}

absl::StatusOr<SymbolIndex> SymbolIndex::FromText(std::string_view text,
                                                  const BuildOptions& options) {
  SymbolList list;
  absl::Status status = list.AddText(text);
  if (status.ok()) status = CheckAddresses(list);
  if (!status.ok()) return status;
  BuildFacts facts;
  facts.knows_modules = true;
  absl::StatusOr<IndexData> data = BuildWithBtf(&list, options, facts);
  if (!data.ok()) return data.status();
  return SymbolIndex(std::make_shared<const Rep>(Rep{*std::move(data)}));
}

absl::StatusOr<SymbolIndex> SymbolIndex::FromSystemMap(
    const std::string& path, const BuildOptions& options) {
  SymbolList list;
  absl::Status status = ReadSystemMap(path, &list);
  if (!status.ok()) return status;
  absl::StatusOr<IndexData> data = BuildWithBtf(&list, options, {});
  if (!data.ok()) return data.status();
  return SymbolIndex(std::make_shared<const Rep>(Rep{*std::move(data)}));
}

absl::StatusOr<SymbolIndex> SymbolIndex::FromElf(const std::string& path,
                                                 const BuildOptions& options) {
  absl::StatusOr<std::shared_ptr<const MappedFile>> file =
      MappedFile::Map(path);
  if (!file.ok()) return file.status();
  SymbolList list;
  absl::StatusOr<ElfSource> elf = ReadElf((*file)->bytes(), path, &list);
  if (!elf.ok()) return Annotate(elf.status(), path);
  absl::StatusOr<IndexData> data = BuildIndexData(&list, options, elf->facts);
  if (!data.ok()) return Annotate(data.status(), path);
  absl::Status status = AddElfBtf(*std::move(elf), options, &*data);
  if (!status.ok()) return Annotate(status, path);
  return SymbolIndex(std::make_shared<const Rep>(Rep{*std::move(data)}));
}

absl::StatusOr<SymbolIndex> SymbolIndex::Open(const std::string& path,
                                              const OpenOptions& options) {
  absl::StatusOr<std::shared_ptr<const MappedFile>> file =
      MappedFile::Map(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<IndexData> data =
      ParseIndexData((*file)->bytes(), *file, options.verify);
  if (!data.ok()) return Annotate(data.status(), path);
  absl::Status status;
  if (options.verify) status = VerifyIndexData(*data);
  if (status.ok()) status = Relocate(options, &*data);
  if (!status.ok()) return Annotate(status, path);
  return SymbolIndex(std::make_shared<const Rep>(Rep{*std::move(data)}));
}

absl::Status SymbolIndex::Save(const std::string& path) const {
  std::array<std::string, 2> scratch;
  return WriteFileAtOnce(path, PackContainer(SectionsOf(rep_->data, &scratch)));
}

absl::StatusOr<SymbolIndex> SymbolIndex::WithModules(
    const KernelFiles& files) const {
  SymbolList list(SymbolList::Keep::kModulesOnly);
  absl::Status status = ReadKallsyms(files, &list);
  if (!status.ok()) return status;
  BuildFacts facts = FactsOf(files);
  const std::string& build_id = rep_->data.info.build_id;
  if (!facts.build_id.empty() && !build_id.empty() &&
      facts.build_id != build_id) {
    return absl::FailedPreconditionError(
        "the index is of another kernel: the build ids differ; build it anew");
  }
  absl::StatusOr<IndexData> data =
      WithModulesOf(&list, std::move(facts), rep_->data);
  if (!data.ok()) return data.status();
  if (has_btf()) {
    BtfStore store(files);
    status = AddModulesBtfOf(&store, &*data);
    if (!status.ok()) return status;
  }
  return SymbolIndex(std::make_shared<const Rep>(Rep{*std::move(data)}));
}

absl::StatusOr<SymbolIndex> SymbolIndex::WithModulesFromText(
    std::string_view text) const {
  SymbolList list(SymbolList::Keep::kModulesOnly);
  absl::Status status = list.AddText(text);
  if (!status.ok()) return status;
  absl::StatusOr<IndexData> data = WithModulesOf(&list, {}, rep_->data);
  if (!data.ok()) return data.status();
  return SymbolIndex(std::make_shared<const Rep>(Rep{*std::move(data)}));
}

absl::StatusOr<SymbolIndex> SymbolIndex::WithBtf(std::string_view btf) const {
  IndexData data = rep_->data;
  absl::Status status = AddBtf(std::string(btf), &data);
  if (!status.ok()) return status;
  return SymbolIndex(std::make_shared<const Rep>(Rep{std::move(data)}));
}

absl::StatusOr<SymbolIndex> SymbolIndex::WithKernelBtf(
    const KernelFiles& files) const {
  IndexData data = rep_->data;
  BtfStore store(files);
  absl::Status status = AddBtfOf(&store, &data);
  if (status.ok()) status = AddModulesBtfOf(&store, &data);
  if (!status.ok()) return status;
  return SymbolIndex(std::make_shared<const Rep>(Rep{std::move(data)}));
}

absl::StatusOr<std::vector<IndexSymbol>> SymbolIndex::Find(
    std::string_view name) const {
  std::vector<IndexSymbol> symbols;
  for (const Table* table : rep_->data.tables()) {
    if (!AppendSymbols(*table, name, &symbols)) return Damaged();
  }
  return symbols;
}

AddressLookup SymbolIndex::FindAddress(std::string_view name) const {
  const AddressLookup lookup = rep_->data.core.table.FindAddress(name);
  if (lookup.state != LookupState::kAbsent ||
      rep_->data.modules.table.locator().empty()) {
    return lookup;
  }
  return rep_->data.modules.table.FindAddress(name);
}

void SymbolIndex::FindAddresses(absl::Span<const std::string_view> names,
                                absl::Span<AddressLookup> results) const {
  const size_t cnt = std::min(names.size(), results.size());
  rep_->data.core.table.FindAddresses(names.first(cnt), results.first(cnt));
  const Table& modules = rep_->data.modules.table;
  if (modules.locator().empty()) return;
  for (size_t i = 0; i < cnt; ++i) {
    if (results[i].state != LookupState::kAbsent) continue;
    results[i] = modules.FindAddress(names[i]);
  }
}

absl::Status SymbolIndex::FindPrefix(
    std::string_view prefix,
    absl::FunctionRef<bool(const IndexSymbolView&)> visit) const {
  const bool pads = IsPadName(prefix);
  return ForEach([&](const IndexSymbolView& symbol) {
    if (symbol.name.substr(0, prefix.size()) != prefix ||
        (!pads && IsPadName(symbol.name))) {
      return true;
    }
    return visit(symbol);
  });
}

absl::Status SymbolIndex::FindGlob(
    std::string_view glob,
    absl::FunctionRef<bool(const IndexSymbolView&)> visit) const {
  absl::Status status = CheckGlob(glob);
  if (!status.ok()) return status;
  const bool pads = IsPadName(glob);
  return ForEach([&](const IndexSymbolView& symbol) {
    if ((!pads && IsPadName(symbol.name)) || !GlobMatch(glob, symbol.name)) {
      return true;
    }
    return visit(symbol);
  });
}

absl::Status SymbolIndex::ForEach(
    absl::FunctionRef<bool(const IndexSymbolView&)> visit) const {
  return WalkTables(rep_->data.tables(), visit) ? absl::OkStatus() : Damaged();
}

absl::StatusOr<Symbolized> SymbolIndex::Symbolize(
    uint64_t addr, const SymbolizeOptions& options) const {
  Symbolized result;
  const bool ok = ForHolders(rep_->data, addr, options,
                             [&result](const SymbolizedView& view) {
                               result.symbols.emplace_back();
                               Assign(view, &result.symbols.back());
                             });
  if (!ok) return Damaged();
  std::stable_sort(result.symbols.begin(), result.symbols.end(),
                   IsBetter<SymbolizedName>);
  return result;
}

LookupState SymbolIndex::SymbolizeFirst(uint64_t addr, SymbolizedName* symbol,
                                        const SymbolizeOptions& options) const {
  bool found = false;
  const bool ok =
      ForHolders(rep_->data, addr, options, [&](const SymbolizedView& view) {
        if (!found) {
          Assign(view, symbol);
          found = true;
          return;
        }
        SymbolizedView best;
        static_cast<Symbol&>(best) = {symbol->addr, symbol->type, symbol->name,
                                      symbol->module};
        best.size = symbol->size;
        best.offset = symbol->offset;
        if (IsBetter(view, best)) Assign(view, symbol);
      });
  if (!ok) return LookupState::kDamaged;
  return found ? LookupState::kFound : LookupState::kAbsent;
}

absl::StatusOr<std::vector<IndexSymbol>> SymbolIndex::FindBtf(
    uint32_t id) const {
  const IndexData& data = rep_->data;
  if (!has_btf()) {
    return absl::FailedPreconditionError(
        "the index has no BTF ids; add them with WithBtf()");
  }
  return FunctionsOf(data.btf, id, data.core.table, "");
}

absl::StatusOr<std::vector<IndexSymbol>> SymbolIndex::FindBtf(
    std::string_view module, uint32_t id) const {
  if (module.empty()) return FindBtf(id);
  const IndexData& data = rep_->data;
  const ModulesBtf::Object* const object = data.modules_btf.ids.Find(module);
  if (object == nullptr) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the index has no BTF ids of module '%s'; add them with "
        "WithKernelBtf()",
        Av(module)));
  }
  if (object->code != absl::StatusCode::kOk) {
    return absl::Status(object->code, Av(object->message));
  }
  if (id < object->first_id) return std::vector<IndexSymbol>();
  return FunctionsOf(object->ids, id - object->first_id, data.modules.table,
                     object->module);
}

std::vector<ModuleBtf> SymbolIndex::ModulesWithBtf() const {
  std::vector<ModuleBtf> modules;
  for (const ModulesBtf::Object& object :
       rep_->data.modules_btf.ids.objects()) {
    modules.push_back({std::string(object.module),
                       absl::Status(object.code, Av(object.message))});
  }
  return modules;
}

bool SymbolIndex::has_btf() const { return rep_->data.btf_bytes.has_value(); }

uint64_t SymbolIndex::size() const {
  uint64_t symbols = 0;
  for (const Table* table : rep_->data.tables()) {
    symbols += table->shape().symbols;
  }
  return symbols;
}

IndexStats SymbolIndex::Stats() const {
  const IndexData& data = rep_->data;
  IndexStats stats;
  stats.core = StatsOf(data.core.table);
  stats.modules = StatsOf(data.modules.table);
  stats.modules.owners = data.modules.table.owners().empty()
                             ? 0
                             : data.modules.table.owners().size() - 1;
  stats.dictionary_bytes = data.packed_dictionary.size();
  stats.btf_bytes = data.btf_bytes.value_or("").size();
  stats.modules_btf_bytes = data.modules_btf.bytes.size();
  std::array<std::string, 2> scratch;
  const Sections sections = SectionsOf(data, &scratch);
  stats.file_bytes = ContainerBytes(sections);
  stats.header_bytes = ContainerHeaderBytes(sections.size()) +
                       scratch[0].size() + scratch[1].size();
  stats.own_dictionary = data.info.own_dictionary;
  stats.generation =
      data.modules_info.has_value() ? data.modules_info->generation : 0;
  stats.build_id = data.info.build_id;
  stats.stext = data.info.has_stext ? data.info.stext + data.slide : 0;
  stats.slide = data.slide;
  stats.modules_left_out = data.modules_left_out;
  return stats;
}

absl::Status SymbolIndex::Verify() const { return VerifyIndexData(rep_->data); }

}  // namespace ksweep
