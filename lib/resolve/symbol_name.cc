#include "lib/resolve/symbol_name.h"

#include <algorithm>
#include <array>

namespace ksweep {
namespace {

// All of them begin with two underscores.
constexpr std::array<std::string_view, 4> kNeverPrefixes = {
    "__pfx_", "__SCT__", "__cfi_", "__ftrace_invalid_address___"};

constexpr std::array<std::string_view, 4> kNumberedClones = {
    "isra", "constprop", "part", "lto_priv"};

bool StartsWith(std::string_view text, std::string_view prefix) {
  // The first difference is mostly the third byte.
  return text.size() >= prefix.size() && text.size() > 2 &&
         text[2] == prefix[2] && text.substr(0, prefix.size()) == prefix;
}

bool EndsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         text.substr(text.size() - suffix.size()) == suffix;
}

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

bool IsLowerHex(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

// `$x`, `$d.12`, …: marks of what follows in the text, not names.
bool IsMappingSymbol(std::string_view name) {
  return name.size() >= 2 && name[0] == '$' &&
         (name[1] == 'a' || name[1] == 'd' || name[1] == 't' ||
          name[1] == 'x') &&
         (name.size() == 2 || name[2] == '.');
}

// Splits off what follows the last dot, if something stands before it.
bool SplitLast(std::string_view name, std::string_view* head,
               std::string_view* tail) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  *head = name.substr(0, dot);
  *tail = name.substr(dot + 1);
  return true;
}

bool IsColdHalf(std::string_view name) {
  std::string_view head, tail;
  if (EndsWith(name, ".cold")) return true;
  return SplitLast(name, &head, &tail) && IsDigits(tail) &&
         EndsWith(head, ".cold");
}

}  // namespace

bool HasNeverPrefix(std::string_view name) {
  // No prefix has another second letter, and many names have.
  if (name[0] == '_' && name.size() > 1 && name[1] != '_') return false;
  for (std::string_view prefix : kNeverPrefixes) {
    if (StartsWith(name, prefix)) return true;
  }
  return IsMappingSymbol(name);
}

bool HasNeverSuffix(std::string_view name) {
  return IsColdHalf(name) || EndsWith(name, ".cfi_jt");
}

bool IsNeverTarget(std::string_view name) {
  return IsNeverTarget(name, name.find('.') != std::string_view::npos);
}

bool IsNeverTargetPattern(std::string_view pattern) {
  for (std::string_view prefix : kNeverPrefixes) {
    if (StartsWith(pattern, prefix)) return true;
  }
  return EndsWith(pattern, ".cold") || EndsWith(pattern, ".cfi_jt");
}

bool IsPseudoOwner(std::string_view module) {
  return module == "bpf" || StartsWith(module, "__builtin__");
}

std::string_view StripLlvm(std::string_view name) {
  constexpr std::string_view kLlvm = ".llvm.";
  const size_t at = name.rfind(kLlvm);
  if (at == std::string_view::npos || at == 0) return name;
  return IsLowerHex(name.substr(at + kLlvm.size())) ? name.substr(0, at) : name;
}

bool StripCloneSuffix(std::string_view* name) {
  std::string_view head, tail;
  if (!SplitLast(*name, &head, &tail) || !IsLowerHex(tail)) return false;
  std::string_view base, kind;
  if (IsDigits(tail) && SplitLast(head, &base, &kind) &&
      std::find(kNumberedClones.begin(), kNumberedClones.end(), kind) !=
          kNumberedClones.end()) {
    *name = base;
    return true;
  }
  // What is left is a hash, but not that of another suffix, as in f.llvm.123,
  // nor one of the numbers that tell local variables and functions apart.
  constexpr size_t kMinHash = 4;
  if (tail.size() < kMinHash) return false;
  if (EndsWith(head, ".llvm") || EndsWith(head, ".cold")) return false;
  *name = head;
  return true;
}

}  // namespace ksweep
