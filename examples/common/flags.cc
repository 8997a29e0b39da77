#include "common/flags.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_format.h"
#include "common/output.h"

namespace examples {
namespace {

// One argument that begins with a dash, taken apart.
struct FlagText {
  std::string name;
  std::optional<std::string> value;
};

FlagText SplitFlag(const std::string& arg) {
  const size_t begin = arg.rfind("--", 0) == 0 ? 2 : 1;
  const size_t equals = arg.find('=', begin);
  FlagText text;
  text.name = arg.substr(begin, equals - begin);
  std::replace(text.name.begin(), text.name.end(), '-', '_');
  if (text.name == "v") text.name = "verbose";
  if (text.name == "h") text.name = "help";
  if (text.name == "o") text.name = "output";
  if (text.name == "p") text.name = "pid";
  if (text.name == "i") text.name = "interval";
  if (equals != std::string::npos) text.value = arg.substr(equals + 1);
  return text;
}

absl::CommandLineFlag* FindBool(const std::string& name) {
  absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
  return flag != nullptr && flag->IsOfType<bool>() ? flag : nullptr;
}

absl::Status SetFlag(absl::CommandLineFlag& flag, const std::string& value) {
  std::string error;
  if (flag.ParseFrom(value, &error)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--%s=%s: this value does not fit, the flag's default is "
                      "\"%s\"; --help says what it is for",
                      flag.Name(), value, flag.DefaultValue()));
}

// Reads one command line from left to right.
class Parser {
 public:
  explicit Parser(absl::Span<const std::string> args) : args_(args) {}

  absl::StatusOr<CommandLine> Parse() {
    while (next_ < args_.size()) {
      const std::string& arg = args_[next_++];
      if (arg == "--") break;
      if (arg.empty() || arg[0] != '-' || arg == "-") {
        line_.requests.push_back(arg);
      } else if (absl::Status status = ParseFlag(arg); !status.ok()) {
        return status;
      }
    }
    const auto rest = args_.subspan(next_);
    line_.requests.insert(line_.requests.end(), rest.begin(), rest.end());
    return line_;
  }

 private:
  absl::Status ParseFlag(const std::string& arg) {
    const FlagText text = SplitFlag(arg);
    if (!text.value.has_value()) {
      if (text.name == "help") return Set(line_.help);
      if (text.name == "version") return Set(line_.version);
      if (auto* flag = FindBool(text.name)) return SetFlag(*flag, "true");
      if (auto* flag = text.name.rfind("no", 0) == 0
                           ? FindBool(text.name.substr(2))
                           : nullptr) {
        return SetFlag(*flag, "false");
      }
    }
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(text.name);
    if (flag == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: there is no such flag; --help lists them, and "
                          "requests that begin with \"-\" go after \"--\"",
                          arg));
    }
    if (text.value.has_value()) return SetFlag(*flag, *text.value);
    // "--root --json" is more likely a forgotten value than a folder "--json".
    if (next_ == args_.size() || args_[next_].rfind("--", 0) == 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: the value is missing; write --%s=VALUE", arg, flag->Name()));
    }
    return SetFlag(*flag, args_[next_++]);
  }

  static absl::Status Set(bool& option) {
    option = true;
    return absl::OkStatus();
  }

  absl::Span<const std::string> args_;
  size_t next_ = 0;
  CommandLine line_;
};

// The flags of this program, by name; Abseil's libraries have some of theirs.
std::vector<const absl::CommandLineFlag*> OwnFlags() {
  std::vector<const absl::CommandLineFlag*> flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (flag->Filename().find("absl/") == std::string::npos) {
      flags.push_back(flag);
    }
  }
  std::sort(flags.begin(), flags.end(),
            [](const auto* a, const auto* b) { return a->Name() < b->Name(); });
  return flags;
}

[[noreturn]] void ExitWith(std::string_view text) {
  std::exit(WriteOut(text) ? kExitOk : kExitFailed);
}

}  // namespace

absl::StatusOr<CommandLine> ParseFlags(absl::Span<const std::string> args) {
  return Parser(args).Parse();
}

std::string HelpText(std::string_view usage) {
  std::string text = absl::StrFormat("%s\n\nFlags:\n", usage);
  for (const absl::CommandLineFlag* flag : OwnFlags()) {
    const bool is_bool = flag->IsOfType<bool>();
    const std::string shown = flag->CurrentValue();
    absl::StrAppendFormat(&text, "  --%s%s\n      %s (default: %s)\n",
                          is_bool ? "[no]" : "", flag->Name(), flag->Help(),
                          shown.empty() ? "none" : shown);
  }
  return text + "  --help, --version\n";
}

std::vector<std::string> ParseFlagsOrExit(int argc, char** argv,
                                          std::string_view name,
                                          std::string_view usage) {
  SetProgramName(name);
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  const std::string help = HelpText(usage);  // before flags are set
  absl::StatusOr<CommandLine> line = ParseFlags(args);
  if (!line.ok()) {
    PrintError(line.status());
    std::exit(kExitUsage);
  }
  if (line->help) ExitWith(help);
  if (line->version) {
    ExitWith(absl::StrFormat("%s (ksweep) %s\n", name, KSWEEP_VERSION));
  }
  return std::move(line->requests);
}

}  // namespace examples
