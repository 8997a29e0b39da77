// What a SymbolIndex is made of.

#ifndef KSWEEP_LIB_INDEX_INDEX_DATA_H_
#define KSWEEP_LIB_INDEX_INDEX_DATA_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ksweep/symbol_index.h"
#include "lib/index/btf_ids.h"
#include "lib/index/container.h"
#include "lib/index/dictionary.h"
#include "lib/index/modules_btf.h"
#include "lib/index/symbol_list.h"
#include "lib/index/table.h"
#include "lib/source/btf_store.h"

namespace ksweep {

// Of the kernel build that the core part is about.
struct CoreInfo {
  std::string build_id;  // bytes; empty: not known
  bool has_stext = false;
  uint64_t stext = 0;  // as built
  bool own_dictionary = false;

  std::string Pack() const;
  static absl::StatusOr<CoreInfo> Unpack(std::string_view packed);
};

// Of the moment that the modules' part is about.
struct ModulesInfo {
  uint64_t generation = 1;
  std::string boot_id;  // as the kernel writes it; empty: not known
  bool has_stext = false;
  uint64_t stext = 0;  // of that boot

  std::string Pack() const;
  static absl::StatusOr<ModulesInfo> Unpack(std::string_view packed);
};

// A table and whoever keeps its bytes.
struct IndexPart {
  std::shared_ptr<const void> storage;
  Table table;
};

// Empty: of no module.
struct ModulesBtfPart {
  std::string_view bytes;
  ModulesBtf ids;
  std::shared_ptr<const void> storage;
};

struct IndexData {
  std::shared_ptr<const Dictionary> dictionary = Dictionary::BuiltIn();
  std::string packed_dictionary;
  CoreInfo info;
  IndexPart core;
  std::optional<ModulesInfo> modules_info;
  IndexPart modules;
  std::shared_ptr<const void> btf_storage;
  std::optional<std::string_view> btf_bytes;
  BtfIds btf;
  ModulesBtfPart modules_btf;
  uint64_t slide = 0;
  bool modules_left_out = false;
  // Of an opened file: for its checksums.
  std::shared_ptr<const Container> file;

  // Core first. Two, one of which may be empty.
  std::array<const Table*, 2> tables() const {
    return {&core.table, &modules.table};
  }
};

// The sections of a file. Those of tables are numbered from these on.
inline constexpr SectionKind kInfoSection = 1;
inline constexpr SectionKind kDictionarySection = 2;
inline constexpr SectionKind kModulesInfoSection = 3;
inline constexpr SectionKind kBtfSection = 4;
inline constexpr SectionKind kModulesBtfSection = 5;
inline constexpr SectionKind kCoreSections = 16;
inline constexpr SectionKind kModulesSections = 32;

// What the symbols do not say themselves.
struct BuildFacts {
  std::string build_id;
  std::string boot_id;
  std::vector<uint64_t> borders;  // besides those of the options
  uint64_t generation = 1;
  // The list has all modules there are, be it none.
  bool knows_modules = false;
};

absl::StatusOr<IndexData> BuildIndexData(SymbolList* list,
                                         const BuildOptions& options,
                                         const BuildFacts& facts);

// Makes `data`'s modules' part of those in `list`.
absl::Status ReplaceModules(SymbolList* list, const BuildFacts& facts,
                            uint64_t tail_bytes, IndexData* data);

// Makes `data`'s table of BTF ids from the core kernel's BTF, raw or in an ELF
// file.
absl::Status AddBtf(std::string btf, IndexData* data);
absl::Status AddBtfOf(BtfStore* store, IndexData* data);

// And those of the modules in its table. Fails for none of them alone.
absl::Status AddModulesBtfOf(BtfStore* store, IndexData* data);
// Of one, whose BTF goes on that in `base`; NotFound if it has none.
absl::Status AddModuleBtf(std::string_view module,
                          absl::StatusOr<std::string> btf,
                          const std::string& base, IndexData* data);

// FailedPrecondition if the list shows no addresses, or not all.
absl::Status CheckAddresses(const SymbolList& list);

// The sections that Save() writes. Views into `data` and `scratch`.
Sections SectionsOf(const IndexData& data, std::array<std::string, 2>* scratch);

// An index from the bytes of a file, which `storage` keeps.
absl::StatusOr<IndexData> ParseIndexData(std::string_view bytes,
                                         std::shared_ptr<const void> storage,
                                         bool verify);

// Moves the addresses by `slide`.
void SlideIndexData(uint64_t slide, IndexData* data);

absl::Status VerifyIndexData(const IndexData& data);

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_INDEX_DATA_H_
