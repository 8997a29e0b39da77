// Makes a symbol index and asks it: names to addresses, addresses to names.
//
//   $ symindex build -o kernel.ksx >/dev/null
//   $ symindex name --index=kernel.ksx vfs_read t_next
//   ADDRESS           TYPE  SIZE  MODULE  NAME
//   ffffffff9c5b6590  T      880  -       vfs_read
//   ffffffff9c2eec40  t      256  -       t_next
//   ffffffff9c3016b0  t       96  -       t_next
//   ffffffff9c313530  t      224  -       t_next
//   ffffffff9c31a0f0  t       48  -       t_next
//   ffffffff9c323d10  t       80  -       t_next
//   ffffffff9c690a40  t       32  -       t_next
//   $ echo ffffffff9c5b65a3 | symindex addr --index=kernel.ksx -
//   ffffffff9c5b65a3  vfs_read+0x13/0x370
//   $ symindex addr --index=kernel.ksx --json ffffffff9c5b65a3
//   {"address":"0xffffffff9c5b65a3","symbols":[{"name":"vfs_read",
//       "module":null,"offset":19,"addr":"0xffffffff9c5b6590","type":"T",
//       "size":880}]}
//   $ symindex verify --index=kernel.ksx
//   kernel.ksx: 222,511 symbols in 2,342,352 bytes, all as they should be

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "common/flags.h"
#include "common/output.h"
#include "common/table.h"
#include "ksweep/symbol_index.h"
#include "symindex_answers.h"

ABSL_FLAG(std::string, index, "", "the file with the index");
ABSL_FLAG(std::string, output, "", "the file to write (also: -o)");
ABSL_FLAG(std::string, root, "",
          "folder below which the lists of a kernel are: build reads them "
          "(without it those of the running kernel); the others tell the "
          "addresses that this kernel has, and refuse an index of another");
ABSL_FLAG(std::string, vmlinux, "",
          "build from this ELF file, a vmlinux or a module");
ABSL_FLAG(std::string, system_map, "", "build from this System.map");
ABSL_FLAG(
    std::string, btf, "",
    "file with the core kernel's BTF, raw or a vmlinux, for build: instead "
    "of the BTF below the root, or in the ELF file; a module's goes on it");
ABSL_FLAG(std::string, build_id, "",
          "the kernel's build id in hexadecimal, for build from a System.map");
ABSL_FLAG(bool, own_dictionary, false,
          "build trains a dictionary on the names, and uses it if the file "
          "gets smaller; takes seconds");
ABSL_FLAG(bool, as_built, false,
          "tell the addresses that the index was built from, whatever kernel "
          "is running");
ABSL_FLAG(bool, functions, false,
          "addr finds nothing but symbols of type T, t, W and w");
ABSL_FLAG(bool, json, false, "print answers as JSON, one a line");

namespace examples {
namespace {

constexpr std::string_view kUsage =
    R"(symindex COMMAND [FLAG…] [ARGUMENT…]
Makes an index of a kernel's symbols, and asks it.

  build [--root=DIR | --vmlinux=FILE | --system_map=FILE] -o FILE
                               makes an index of the running kernel, or of that
                               one
  name   --index=FILE NAME…    every symbol of these names
  addr   --index=FILE ADDR…    what is at these addresses (hexadecimal)
  prefix --index=FILE PREFIX…  symbols whose names begin like this
  glob   --index=FILE GLOB…    symbols whose names match
  btf    --index=FILE ID…      functions of these ids in the core kernel's BTF,
                               and of MODULE:ID in that of a module
  modules --index=FILE -o FILE takes up the modules that are loaded now
  stat   --index=FILE          what is in the file, and how many bytes it takes
  verify --index=FILE          reads all of the file and checks it

The argument "-" stands for lines of the standard input, each answered at once.
Addresses are those of the running kernel if the index is its, else those that
the index was built from, with a message.

Exit code: 0; 1 if it failed, or something in the command line is not found; 2
for wrong usage.)";

using Args = std::vector<std::string>;

// --- input ---

absl::StatusOr<uint64_t> ParseNumber(std::string_view text, int base,
                                     std::string_view what) {
  std::string_view digits = text;
  if (base == 16 && digits.substr(0, 2) == "0x") digits.remove_prefix(2);
  uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number, base);
  if (error == std::errc() && stop == end) return number;
  return absl::InvalidArgumentError(
      absl::StrFormat("'%s' is no %s", Printable(text), what));
}

absl::StatusOr<uint64_t> ParseAddr(std::string_view text) {
  return ParseNumber(text, 16, "hexadecimal address of 64 bits");
}

// A function in the BTF of a module, or of the core kernel if that is empty.
struct BtfId {
  std::string module;
  uint32_t id = 0;
};

// "ID" or "MODULE:ID", also with the "btf:" that stands in front in requests.
absl::StatusOr<BtfId> ParseBtfId(std::string_view text) {
  constexpr std::string_view kPrefix = "btf:";
  std::string_view rest = text;
  if (rest.substr(0, kPrefix.size()) == kPrefix) {
    rest.remove_prefix(kPrefix.size());
  }
  BtfId parsed;
  if (const size_t colon = rest.rfind(':'); colon != std::string_view::npos) {
    parsed.module = rest.substr(0, colon);
    rest.remove_prefix(colon + 1);
    if (parsed.module == "vmlinux") parsed.module.clear();
  }
  const absl::StatusOr<uint64_t> id = ParseNumber(rest, 10, "BTF id");
  if (!id.ok()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("'%s' is no BTF id, nor MODULE:ID", Printable(text)));
  }
  parsed.id = static_cast<uint32_t>(*id);
  if (*id >> 32 == 0) return parsed;
  return absl::InvalidArgumentError(
      absl::StrFormat("'%s' is no BTF id, they have 32 bits", Printable(text)));
}

absl::StatusOr<std::string> ParseBuildId(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    const absl::StatusOr<uint64_t> byte =
        ParseNumber(text.substr(i, 2), 16, "byte");
    if (!byte.ok() || text.size() % 2 != 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "--build_id=%s: pairs of hexadecimal digits are expected", text));
    }
    bytes.push_back(static_cast<char>(*byte));
  }
  return bytes;
}

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return std::nullopt;
  return text;
}

// One thing that is asked for. A line of the standard input is answered at
// once, and it is no failure if it is not found.
struct Word {
  std::string text;
  uint64_t line = 0;  // 0: of the command line

  bool streamed() const { return line != 0; }
};

enum class Answer { kFound, kNotFound, kNotWritten };

using AnswerFn = std::function<absl::StatusOr<Answer>(const Word&)>;

Answer Write(const std::string& text, bool found) {
  if (!WriteOut(text)) return Answer::kNotWritten;
  return found ? Answer::kFound : Answer::kNotFound;
}

// Answers lines until one fails.
absl::StatusOr<int> AnswerInput(const AnswerFn& answer) {
  Word word;
  while (std::getline(std::cin, word.text)) {
    ++word.line;
    if (word.text.empty()) continue;
    const absl::StatusOr<Answer> result = answer(word);
    if (!result.ok()) {
      return absl::Status(
          result.status().code(),
          absl::StrFormat("line %d of the standard input: %s", word.line,
                          result.status().message()));
    }
    if (*result == Answer::kNotWritten) return kExitFailed;
  }
  return kExitOk;
}

// Answers each word of the command line, and the lines of the standard input in
// the place of "-". Returns the exit code.
absl::StatusOr<int> AnswerAll(const Args& args, const AnswerFn& answer) {
  int code = kExitOk;
  for (const std::string& arg : args) {
    if (arg == "-") {
      const absl::StatusOr<int> result = AnswerInput(answer);
      if (!result.ok() || *result != kExitOk) return result;
      continue;
    }
    const absl::StatusOr<Answer> result = answer({arg});
    if (!result.ok()) return result.status();
    if (*result == Answer::kNotWritten) return kExitFailed;
    if (*result == Answer::kNotFound) code = kExitFailed;
  }
  return code;
}

// --- opening ---

// True if the running kernel has this build id among its notes.
bool IsRunning(const std::string& build_id) {
  const std::optional<std::string> notes = ReadFile("/sys/kernel/notes");
  return !build_id.empty() && notes.has_value() &&
         notes->find(build_id) != std::string::npos;
}

absl::StatusOr<ksweep::SymbolIndex> OpenAsBuilt(const std::string& path) {
  ksweep::OpenOptions options;
  options.relocation = ksweep::Relocation::kAsBuilt;
  return ksweep::SymbolIndex::Open(path, options);
}

// Without --root: relocated if the index is the running kernel's.
absl::StatusOr<ksweep::SymbolIndex> OpenForAnyKernel(const std::string& path) {
  absl::StatusOr<ksweep::SymbolIndex> index = ksweep::SymbolIndex::Open(path);
  if (!absl::IsFailedPrecondition(index.status())) return index;
  absl::StatusOr<ksweep::SymbolIndex> as_built = OpenAsBuilt(path);
  // Its own kernel, which does not tell where it is: no address would be right.
  if (!as_built.ok() || IsRunning(as_built->Stats().build_id)) return index;
  PrintMessage(
      "the index is not the running kernel's; addresses are those it was built "
      "from (--as_built says so without this message, --root=/ refuses it)");
  return as_built;
}

absl::StatusOr<ksweep::SymbolIndex> OpenAsAsked() {
  const std::string path = absl::GetFlag(FLAGS_index);
  const std::string root = absl::GetFlag(FLAGS_root);
  if (absl::GetFlag(FLAGS_as_built)) return OpenAsBuilt(path);
  if (root.empty()) return OpenForAnyKernel(path);
  ksweep::OpenOptions options;
  options.kernel = ksweep::KernelFiles(root);
  return ksweep::SymbolIndex::Open(path, options);
}

absl::StatusOr<ksweep::SymbolIndex> OpenIndex() {
  absl::StatusOr<ksweep::SymbolIndex> index = OpenAsAsked();
  if (index.ok() && index->Stats().modules_left_out) {
    PrintMessage(
        "the modules in the index are those of another boot, and left out; "
        "\"symindex modules\" takes up the present ones");
  }
  return index;
}

// --- commands ---

bool Json() { return absl::GetFlag(FLAGS_json); }

int WriteStats(const ksweep::SymbolIndex& index) {
  const ksweep::IndexStats stats = index.Stats();
  return WriteOut(Json() ? StatsJson(stats) : StatsText(stats)) ? kExitOk
                                                                : kExitFailed;
}

// Says which modules' BTF could not be used.
void PrintBtfMessages(const ksweep::SymbolIndex& index) {
  for (const ksweep::ModuleBtf& module : index.ModulesWithBtf()) {
    if (module.status.ok()) continue;
    const absl::string_view why = module.status.message();
    PrintMessage(absl::StrFormat("no BTF ids of module %s: %s",
                                 Printable(module.module), why));
  }
}

absl::StatusOr<ksweep::BuildOptions> OptionsOfFlags() {
  ksweep::BuildOptions options;
  options.own_dictionary = absl::GetFlag(FLAGS_own_dictionary);
  const absl::StatusOr<std::string> build_id =
      ParseBuildId(absl::GetFlag(FLAGS_build_id));
  if (!build_id.ok()) return build_id.status();
  options.build_id = *build_id;
  const std::string path = absl::GetFlag(FLAGS_btf);
  if (path.empty()) return options;
  std::optional<std::string> btf = ReadFile(path);
  if (!btf.has_value()) {
    return absl::NotFoundError(
        absl::StrFormat("--btf=%s: the file cannot be read", path));
  }
  options.btf = *std::move(btf);
  return options;
}

// A kernel need not have BTF.
absl::StatusOr<ksweep::SymbolIndex> BuildFromKernel(
    const ksweep::BuildOptions& options) {
  const std::string root = absl::GetFlag(FLAGS_root);
  const ksweep::KernelFiles files(root.empty() ? "/" : root);
  const absl::StatusOr<ksweep::SymbolIndex> index =
      ksweep::SymbolIndex::FromKernel(files, options);
  if (!index.ok() || !options.btf.empty()) return index;
  absl::StatusOr<ksweep::SymbolIndex> with_btf = index->WithKernelBtf(files);
  if (absl::IsNotFound(with_btf.status())) return index;
  return with_btf;
}

absl::StatusOr<ksweep::SymbolIndex> BuildIndex() {
  const absl::StatusOr<ksweep::BuildOptions> options = OptionsOfFlags();
  if (!options.ok()) return options.status();
  if (const std::string path = absl::GetFlag(FLAGS_vmlinux); !path.empty()) {
    return ksweep::SymbolIndex::FromElf(path, *options);
  }
  if (const std::string path = absl::GetFlag(FLAGS_system_map); !path.empty()) {
    return ksweep::SymbolIndex::FromSystemMap(path, *options);
  }
  return BuildFromKernel(*options);
}

absl::StatusOr<int> Build(const Args&) {
  const absl::StatusOr<ksweep::SymbolIndex> index = BuildIndex();
  if (!index.ok()) return index.status();
  PrintBtfMessages(*index);
  const absl::Status saved = index->Save(absl::GetFlag(FLAGS_output));
  if (!saved.ok()) return saved;
  return WriteStats(*index);
}

absl::StatusOr<int> TakeUpModules(const Args&) {
  absl::StatusOr<ksweep::SymbolIndex> index = OpenIndex();
  if (!index.ok()) return index.status();
  const std::string root = absl::GetFlag(FLAGS_root);
  index = index->WithModules(ksweep::KernelFiles(root.empty() ? "/" : root));
  if (!index.ok()) return index.status();
  PrintBtfMessages(*index);
  const absl::Status saved = index->Save(absl::GetFlag(FLAGS_output));
  if (!saved.ok()) return saved;
  return WriteStats(*index);
}

using FindFn = std::function<absl::StatusOr<IndexSymbols>(
    const ksweep::SymbolIndex&, const std::string&)>;

// One list for all of the command line, one for each line of the standard
// input.
absl::StatusOr<int> AnswerSymbols(const Args& args, const FindFn& find) {
  const absl::StatusOr<ksweep::SymbolIndex> index = OpenIndex();
  if (!index.ok()) return index.status();
  IndexSymbols all;
  const auto answer = [&](const Word& word) -> absl::StatusOr<Answer> {
    const absl::StatusOr<IndexSymbols> symbols = find(*index, word.text);
    if (!symbols.ok()) return symbols.status();
    if (symbols->empty() && !(Json() && word.streamed())) {
      PrintMessage(Printable(word.text) + ": not found");
    }
    if (word.streamed()) {
      return Write(Json() ? SymbolsJson(*symbols)
                          : SymbolsText(*symbols, /*head=*/false),
                   !symbols->empty());
    }
    all.insert(all.end(), symbols->begin(), symbols->end());
    return symbols->empty() ? Answer::kNotFound : Answer::kFound;
  };
  const absl::StatusOr<int> code = AnswerAll(args, answer);
  const bool only_input =
      std::all_of(args.begin(), args.end(),
                  [](const std::string& arg) { return arg == "-"; });
  if (!code.ok() || only_input) return code;
  const std::string text =
      Json() ? SymbolsJson(all) : SymbolsText(all, /*head=*/true);
  return WriteOut(text) ? *code : kExitFailed;
}

absl::StatusOr<int> FindNames(const Args& args) {
  return AnswerSymbols(
      args, [](const ksweep::SymbolIndex& index, const std::string& name) {
        return index.Find(name);
      });
}

// Collects what a visiting search finds.
template <typename Search>
absl::StatusOr<IndexSymbols> Collect(Search search) {
  IndexSymbols symbols;
  const absl::Status status =
      search([&symbols](const ksweep::IndexSymbolView& view) {
        ksweep::IndexSymbol symbol;
        symbol.addr = view.addr;
        symbol.size = view.size;
        symbol.type = view.type;
        symbol.name = view.name;
        symbol.module = view.module;
        symbols.push_back(std::move(symbol));
        return true;
      });
  if (!status.ok()) return status;
  return symbols;
}

absl::StatusOr<int> FindPrefixes(const Args& args) {
  return AnswerSymbols(args, [](const ksweep::SymbolIndex& index,
                                const std::string& prefix) {
    return Collect([&](auto visit) { return index.FindPrefix(prefix, visit); });
  });
}

absl::StatusOr<int> FindGlobs(const Args& args) {
  return AnswerSymbols(
      args, [](const ksweep::SymbolIndex& index, const std::string& glob) {
        return Collect([&](auto visit) { return index.FindGlob(glob, visit); });
      });
}

absl::StatusOr<int> NameAddresses(const Args& args) {
  const absl::StatusOr<ksweep::SymbolIndex> index = OpenIndex();
  if (!index.ok()) return index.status();
  ksweep::SymbolizeOptions options;
  options.functions_only = absl::GetFlag(FLAGS_functions);
  return AnswerAll(args, [&](const Word& word) -> absl::StatusOr<Answer> {
    const absl::StatusOr<uint64_t> addr = ParseAddr(word.text);
    if (!addr.ok()) return addr.status();
    const absl::StatusOr<ksweep::Symbolized> found =
        index->Symbolize(*addr, options);
    if (!found.ok()) return found.status();
    return Write(
        Json() ? AddressJson(*addr, *found) : AddressText(*addr, *found),
        !found->symbols.empty());
  });
}

absl::StatusOr<int> FindBtfIds(const Args& args) {
  const absl::StatusOr<ksweep::SymbolIndex> index = OpenIndex();
  if (!index.ok()) return index.status();
  return AnswerAll(args, [&](const Word& word) -> absl::StatusOr<Answer> {
    const absl::StatusOr<BtfId> id = ParseBtfId(word.text);
    if (!id.ok()) return id.status();
    const absl::StatusOr<IndexSymbols> symbols =
        index->FindBtf(id->module, id->id);
    if (!symbols.ok()) return symbols.status();
    if (symbols->empty() && !Json()) {
      PrintMessage(Printable(word.text) + ": not found");
    }
    return Write(Json() ? BtfJson(id->module, id->id, *symbols)
                        : SymbolsText(*symbols, !word.streamed()),
                 !symbols->empty());
  });
}

absl::StatusOr<int> PrintStats(const Args&) {
  const absl::StatusOr<ksweep::SymbolIndex> index = OpenIndex();
  if (!index.ok()) return index.status();
  return WriteStats(*index);
}

absl::StatusOr<int> Verify(const Args&) {
  const std::string path = absl::GetFlag(FLAGS_index);
  const absl::StatusOr<ksweep::SymbolIndex> index = OpenAsBuilt(path);
  if (!index.ok()) return index.status();
  if (absl::Status status = index->Verify(); !status.ok()) {
    return absl::Status(status.code(),
                        absl::StrFormat("%s: %s", path, status.message()));
  }
  if (Json()) return WriteStats(*index);
  const ksweep::IndexStats stats = index->Stats();
  return WriteOut(absl::StrFormat("%s: %s in %s, all as they should be\n", path,
                                  Count(index->size(), "symbol"),
                                  Count(stats.file_bytes, "byte")))
             ? kExitOk
             : kExitFailed;
}

// --- the command line ---

struct Command {
  std::string_view name;
  absl::StatusOr<int> (*run)(const Args&);
  bool needs_index = true;
  bool needs_output = false;
  bool needs_args = false;
};

constexpr Command kCommands[] = {
    {"build", Build, /*needs_index=*/false, /*needs_output=*/true},
    {"name", FindNames, true, false, /*needs_args=*/true},
    {"addr", NameAddresses, true, false, true},
    {"prefix", FindPrefixes, true, false, true},
    {"glob", FindGlobs, true, false, true},
    {"btf", FindBtfIds, true, false, true},
    {"modules", TakeUpModules, true, /*needs_output=*/true},
    {"stat", PrintStats},
    {"verify", Verify},
};

const Command* FindCommand(const Args& args) {
  if (args.empty()) return nullptr;
  const Command* const found =
      std::find_if(std::begin(kCommands), std::end(kCommands),
                   [&args](const Command& c) { return c.name == args[0]; });
  return found == std::end(kCommands) ? nullptr : found;
}

// An argument that no index could have an answer to.
absl::Status CheckArg(const Command& command, const std::string& arg) {
  if (arg == "-") return absl::OkStatus();
  if (command.name == "addr") return ParseAddr(arg).status();
  if (command.name == "btf") return ParseBtfId(arg).status();
  if (command.name == "glob") {
    return ksweep::SymbolIndex().FindGlob(
        arg, [](const ksweep::IndexSymbolView&) { return true; });
  }
  return absl::OkStatus();
}

absl::Status CheckSources() {
  const bool sources[] = {!absl::GetFlag(FLAGS_root).empty(),
                          !absl::GetFlag(FLAGS_vmlinux).empty(),
                          !absl::GetFlag(FLAGS_system_map).empty()};
  if (std::count(std::begin(sources), std::end(sources), true) > 1) {
    return absl::InvalidArgumentError(
        "more than one of --root, --vmlinux and --system_map; an index is "
        "built from one");
  }
  return ParseBuildId(absl::GetFlag(FLAGS_build_id)).status();
}

absl::Status CheckUsage(const Command& command, const Args& args) {
  if (command.needs_index && absl::GetFlag(FLAGS_index).empty()) {
    return absl::InvalidArgumentError("no index; give --index=FILE");
  }
  if (command.needs_output && absl::GetFlag(FLAGS_output).empty()) {
    return absl::InvalidArgumentError("no file to write; give -o FILE");
  }
  if (command.needs_args && args.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: nothing is asked for; \"-\" reads the standard input",
        command.name));
  }
  if (!command.needs_args && !args.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s takes no argument, but there is '%s'", command.name,
                        Printable(args[0])));
  }
  if (!command.needs_index) return CheckSources();
  for (const std::string& arg : args) {
    if (absl::Status status = CheckArg(command, arg); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

int Run(Args args) {
  const Command* const command = FindCommand(args);
  absl::Status usage;
  if (command == nullptr) {
    usage = absl::InvalidArgumentError(
        args.empty()
            ? "no command"
            : absl::StrFormat("there is no command '%s'", Printable(args[0])));
  } else {
    args.erase(args.begin());
    usage = CheckUsage(*command, args);
  }
  if (!usage.ok()) {
    PrintMessage(absl::StrFormat("%s; --help tells more", usage.message()));
    return kExitUsage;
  }
  const absl::StatusOr<int> code = command->run(args);
  if (code.ok()) return *code;
  PrintError(code.status());
  const absl::string_view message = code.status().message();
  if (Json()) WriteOut(ErrorJson({message.data(), message.size()}));
  return kExitFailed;
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  return examples::Run(
      examples::ParseFlagsOrExit(argc, argv, "symindex", examples::kUsage));
}
