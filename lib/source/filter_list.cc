#include "lib/source/filter_list.h"

#include "lib/source/kallsyms.h"
#include "lib/source/line_reader.h"

namespace ksweep {
namespace {

// Written where a weak function was dropped at link time.
constexpr std::string_view kInvalidPrefix = "__ftrace_invalid_address___";

}  // namespace

bool ParseFilterFunc(std::string_view line, bool with_addrs, FilterFunc* func) {
  func->location = 0;
  if (with_addrs) {
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos) return false;
    std::string_view digits = line.substr(0, blank);
    if (digits.substr(0, 2) == "0x") digits.remove_prefix(2);
    if (!ParseHex(digits, &func->location)) return false;
    line.remove_prefix(blank + 1);
  }
  func->module = {};
  const size_t blank = line.find_first_of(" \t");
  func->name = line.substr(0, blank);
  if (func->name.empty()) return false;
  if (blank == std::string_view::npos) return true;
  // A further column, as of enabled_functions, is none of ours.
  const size_t open = line.find_first_not_of(" \t", blank);
  if (open == std::string_view::npos || line[open] != '[') return true;
  const size_t close = line.find(']', open);
  if (close == std::string_view::npos) return false;
  func->module = line.substr(open + 1, close - open - 1);
  return true;
}

absl::Status ReadFilterFuncs(ListFile* file, bool with_addrs,
                             absl::FunctionRef<bool(const FilterFunc&)> visit,
                             uint64_t* malformed) {
  bool stop = false;
  return ReadLines(
      file,
      [&](std::string_view line) {
        FilterFunc func;
        if (!ParseFilterFunc(line, with_addrs, &func)) {
          ++*malformed;
        } else if (func.name.substr(0, kInvalidPrefix.size()) !=
                   kInvalidPrefix) {
          stop = !visit(func);
        }
      },
      &stop);
}

}  // namespace ksweep
