// A compact table of a kernel's symbols: smaller than the kernel's own, and
// searched in a few cache lines. For whoever looks symbols up again and again:
// agents map one file and share it.
//
//   absl::StatusOr<ksweep::SymbolIndex> index =
//       ksweep::SymbolIndex::FromKernel();              // once; ~200 ms
//   if (!index.ok()) return index.status();
//   absl::Status status = index->Save("/var/cache/vmlinux.ksx");
//   …
//   index = ksweep::SymbolIndex::Open("/var/cache/vmlinux.ksx");  // < 1 ms
//   ksweep::AddressLookup l = index->FindAddress("vfs_read");     // ~0.1 us
//   absl::StatusOr<ksweep::Symbolized> s = index->Symbolize(ip);
//
// For one batch of names a Resolve() is quicker than building an index.

#ifndef KSWEEP_SYMBOL_INDEX_H_
#define KSWEEP_SYMBOL_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/kernel_files.h"
#include "ksweep/symbol.h"

namespace ksweep {

// A symbol of an index. `name` and `module` are bytes, not text of any
// encoding.
struct IndexSymbol {
  uint64_t addr = 0;
  // Bytes up to the next higher symbol of the same region, whatever its type
  // and module; 0: not known, it is the last of its region. Aliases have the
  // same size.
  uint64_t size = 0;
  char type = '?';     // as in nm(1); functions are T t W w
  std::string name;    // 1 to 65,535 bytes
  std::string module;  // empty: the core kernel
};

// The same for a visitor; the views live as long as the call.
struct IndexSymbolView : Symbol {
  uint64_t size = 0;
};

enum class LookupState : uint8_t {
  kAbsent,
  kFound,
  // The index contradicts itself: its file was damaged. See Verify().
  kDamaged,
};

struct AddressLookup {
  LookupState state = LookupState::kAbsent;
  uint64_t addr = 0;  // of the lowest instance; 0 unless kFound

  bool found() const { return state == LookupState::kFound; }
};

// A symbol that holds an address.
struct SymbolizedName : IndexSymbol {
  uint64_t offset = 0;  // of the address from the symbol's start
};

// What is at an address. First the name that Resolve() would choose: T before
// W and w before t before data, then the shorter, then the bytewise lower; the
// others are its aliases, also those of other modules. If both the core and a
// module hold the address, those of a known size come first.
struct Symbolized {
  std::vector<SymbolizedName> symbols;  // empty: nothing is there
};

struct SymbolizeOptions {
  // Only symbols of type T, t, W or w. An address inside data that follows a
  // function is no part of the function.
  bool functions_only = false;
};

// How an index is made.
struct BuildOptions {
  // Identifies the kernel build: the id in the GNU build-id note, as bytes.
  // Empty: taken from the ELF file, or from the kernel's sys/kernel/notes, if
  // the symbols come from there; no symbol text holds it.
  std::string build_id;
  // Addresses that end what is before them, such as the end of the last
  // section. Symbols do not reach across them. `_end` and, in an ELF file, the
  // borders of sections are always such.
  std::vector<uint64_t> borders;
  // How far the last symbol of a region, whose end no one knows, holds
  // addresses, counted from its start.
  uint64_t tail_bytes = 4096;
  // Trains a dictionary on these very names and uses it instead of the
  // built-in one if the file gets smaller by it. Takes ten times as long;
  // worth it for kernels much newer than the library.
  bool own_dictionary = false;
  // The core kernel's BTF, raw or in an ELF file, as for WithBtf(). For a
  // module on disk the BTF that the module's own goes on; without it the ids of
  // that module are not known.
  std::string btf;
};

// Which addresses an opened index tells.
enum class Relocation : uint8_t {
  // Those of the kernel that OpenOptions::kernel names: its build id has to be
  // that of the index, and the slide is taken from its `_stext` and checked
  // against further symbols. A part for modules from another boot is left out.
  kToKernel,
  // Those of OpenOptions::stext, nothing is checked. No modules.
  kToStext,
  // Those that it was built from: for dumps, and machines other than this.
  kAsBuilt,
};

struct OpenOptions {
  Relocation relocation = Relocation::kToKernel;
  KernelFiles kernel;
  uint64_t stext = 0;  // for kToStext
  // Reads the whole file and checks all of it, as Verify() does, instead of
  // the header and what every lookup needs.
  bool verify = false;
};

struct IndexPartStats {
  uint64_t symbols = 0;
  uint64_t names = 0;       // distinct ones, pads that are folded not counted
  uint64_t folded = 0;      // `__pfx_` symbols that cost no bytes of their own
  uint64_t owners = 0;      // modules; 0 in the core part
  uint64_t name_bytes = 0;  // records with names, deltas and references
  uint64_t page_bytes = 0;
  uint64_t locator_bytes = 0;
  uint64_t side_bytes = 0;  // types, segments, duplicates, owners
  // All of these and the header's share.
  uint64_t bytes = 0;
};

struct IndexStats {
  IndexPartStats core;
  IndexPartStats modules;
  uint64_t dictionary_bytes = 0;
  uint64_t btf_bytes = 0;          // ids of the core kernel's BTF
  uint64_t modules_btf_bytes = 0;  // of modules'
  uint64_t header_bytes = 0;
  // What Save() writes.
  uint64_t file_bytes = 0;
  bool own_dictionary = false;
  // Of the modules' part, which may be empty; 0 if there is none, as in an
  // index of a System.map or vmlinux. WithModules() counts it up.
  uint64_t generation = 0;
  std::string build_id;  // bytes; empty: not known
  uint64_t stext = 0;    // where `_stext` is; 0 if there is none
  uint64_t slide = 0;    // added to what it was built from, modulo 2^64
  // True if the file has a modules' part of another boot, which was left out.
  bool modules_left_out = false;
};

// A module that has BTF.
struct ModuleBtf {
  std::string module;
  absl::Status status;  // why its ids are not known; OK if they are
};

// An immutable table of symbols: the core kernel's, which belongs to a kernel
// build, and those of modules and BPF programs, which belong to a moment. A
// value; copies share the table. Thread-safe for concurrent const calls.
//
// Symbols of arm and RISC-V that only mark code and data (`$a $d $t $x`) are
// never part of it. Functions that return absl::Status answer DataLoss if the
// index is damaged.
class SymbolIndex {
 public:
  // An index without symbols.
  SymbolIndex();
  SymbolIndex(const SymbolIndex&);
  SymbolIndex& operator=(const SymbolIndex&);
  SymbolIndex(SymbolIndex&&) noexcept;
  SymbolIndex& operator=(SymbolIndex&&) noexcept;
  ~SymbolIndex();

  // Reads kallsyms. Cost: reading it (~30 ms) and ~1 us a symbol; some 30
  // bytes of memory a symbol, and its names, meanwhile.
  //
  // Errors: NotFound or PermissionDenied if it cannot be read;
  // FailedPrecondition if it shows no addresses, with the sysctl's value.
  static absl::StatusOr<SymbolIndex> FromKernel(
      const KernelFiles& files = KernelFiles(),
      const BuildOptions& options = {});

  // The same from text in the form of kallsyms, in any order of lines.
  // InvalidArgument for a malformed line, with its number.
  static absl::StatusOr<SymbolIndex> FromText(std::string_view text,
                                              const BuildOptions& options = {});

  // Reads a System.map. FailedPrecondition for the placeholder that Debian and
  // its kin install in its stead, with the package that has the real one.
  static absl::StatusOr<SymbolIndex> FromSystemMap(
      const std::string& path, const BuildOptions& options = {});

  // Reads an ELF file's symbol table, and its .BTF if there is one. vmlinux
  // makes a core part; a module (.ko) one for modules, with addresses counted
  // from its first section.
  static absl::StatusOr<SymbolIndex> FromElf(const std::string& path,
                                             const BuildOptions& options = {});

  // Maps a file made by Save(). Cost: < 1 ms, and a read of kallsyms up to
  // `_stext` with kToKernel; of all of kallsyms if there is no build id.
  //
  // Errors: NotFound or PermissionDenied; InvalidArgument for a file that is
  // no index, is of an unknown version or byte order; DataLoss for one that is
  // cut off or damaged; FailedPrecondition for one of another kernel (stale):
  // build id or anchors differ, or the kernel hides its addresses.
  static absl::StatusOr<SymbolIndex> Open(const std::string& path,
                                          const OpenOptions& options = {});

  // Writes all of it, in one step: a reader sees the old file or the new one.
  // The file has mode 0644 less the umask. Works across file systems and
  // machines of any byte order. A symbolic link at `path` is replaced itself.
  // FailedPrecondition if a folder, a device or the like is there.
  absl::Status Save(const std::string& path) const;

  // The same core with the modules and BPF programs that `files` lists now, as
  // the next generation; *this stays as it is, so addresses taken before can
  // still be named. Cost: one read of kallsyms.
  // If has_btf(), the BTF of these modules, too, and that of the kernel.
  // FailedPrecondition if `files` is another kernel or has moved since.
  absl::StatusOr<SymbolIndex> WithModules(
      const KernelFiles& files = KernelFiles()) const;
  // The same from text in the form of kallsyms, whose core lines are skipped.
  // There are no BTF ids of modules in it.
  absl::StatusOr<SymbolIndex> WithModulesFromText(std::string_view text) const;

  // Adds the ids of the functions in `btf`, the core kernel's BTF: raw, or an
  // ELF file that has it.
  absl::StatusOr<SymbolIndex> WithBtf(std::string_view btf) const;
  // Adds those of the core kernel's BTF and of each module in the index that
  // has BTF, from below `files`. What is wrong with a module's BTF is that
  // module's matter: see FindBtf() and ModulesWithBtf(). Cost: ~30 ms for the
  // core kernel's, some for each module.
  // NotFound, PermissionDenied or InvalidArgument for the core kernel's.
  absl::StatusOr<SymbolIndex> WithKernelBtf(
      const KernelFiles& files = KernelFiles()) const;

  // Every symbol of that very name: the core's, then those of modules, each in
  // address order. Empty if there is none.
  absl::StatusOr<std::vector<IndexSymbol>> Find(std::string_view name) const;

  // Only the address of the lowest one in the core; of the lowest one in a
  // module if the core has none. The quickest call; does not allocate unless
  // the name is longer than 512 bytes.
  AddressLookup FindAddress(std::string_view name) const;

  // FindAddress() for many names: result i is for name i. Half of the time per
  // name, because memory is fetched ahead. `results` has the size of `names`.
  void FindAddresses(absl::Span<const std::string_view> names,
                     absl::Span<AddressLookup> results) const;

  // Calls `visit` with every symbol whose name starts with `prefix` or matches
  // `glob`, in address order, until it returns false. `__pfx_` symbols are left
  // out unless the text begins with `__pfx_`. Looks at all names: some
  // milliseconds.
  absl::Status FindPrefix(
      std::string_view prefix,
      absl::FunctionRef<bool(const IndexSymbolView&)> visit) const;
  // InvalidArgument for a malformed glob.
  absl::Status FindGlob(
      std::string_view glob,
      absl::FunctionRef<bool(const IndexSymbolView&)> visit) const;

  // Calls `visit` with every symbol in address order, until it returns false.
  // Of those at one address in the order they were given in.
  absl::Status ForEach(
      absl::FunctionRef<bool(const IndexSymbolView&)> visit) const;

  // What holds `addr`: never a symbol of another region, nor one that ends
  // before. Nothing holds address 0.
  absl::StatusOr<Symbolized> Symbolize(
      uint64_t addr, const SymbolizeOptions& options = {}) const;

  // The first symbol of Symbolize() alone, with the address's offset from its
  // start. `symbol`'s strings are used again, so that nothing is allocated.
  LookupState SymbolizeFirst(uint64_t addr, SymbolizedName* symbol,
                             const SymbolizeOptions& options = {}) const;

  // Every function that has the name of FUNC `id` in the core kernel's BTF:
  // none, one, or several of one name. Empty also if there is no such id.
  // FailedPrecondition if the index has no BTF, see WithBtf().
  absl::StatusOr<std::vector<IndexSymbol>> FindBtf(uint32_t id) const;
  bool has_btf() const;
  // The same for an id of `module`'s BTF, which counts on where the kernel's
  // ends, and that module's functions; for the core kernel if it is empty.
  // FailedPrecondition if there are no ids of it; what was wrong with its BTF
  // when it was read, if that is why.
  absl::StatusOr<std::vector<IndexSymbol>> FindBtf(std::string_view module,
                                                   uint32_t id) const;
  // The modules whose BTF was read, ascending.
  std::vector<ModuleBtf> ModulesWithBtf() const;

  // Symbols in all.
  uint64_t size() const;
  // Counts and bytes. Walks over nothing.
  IndexStats Stats() const;

  // Checks every byte against the checksums, and that all parts of the index
  // agree: every name is found where it is. Some 100 ns a symbol.
  absl::Status Verify() const;

 private:
  struct Rep;
  explicit SymbolIndex(std::shared_ptr<const Rep> rep);

  std::shared_ptr<const Rep> rep_;
};

}  // namespace ksweep

#endif  // KSWEEP_SYMBOL_INDEX_H_
