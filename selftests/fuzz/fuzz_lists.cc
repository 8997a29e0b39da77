// Input: a byte that says which list, and its text.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lib/source/blacklist.h"
#include "lib/source/filter_list.h"
#include "lib/source/list_file.h"
#include "lib/source/restrictions.h"
#include "selftests/fuzz/fuzz_target.h"

namespace ksweep {
namespace {

constexpr std::string_view kWords[] = {
    "a",
    "b",
    "c",
    "vfs_read",
    "\n",
    "\n",
    " ",
    "\t",
    "[nf_tables]",
    "[",
    "]",
    "0x",
    "-",
    "10",
    "18",
    "0",
    "ffffffff81234560",
    "ffffffffffffffff",
    "vfs_read [m]\n",
    "ffffffff81234564 vfs_read [m]\n",
    "ffffffff81234574 tcp_x\n",
    "__ftrace_invalid_address___64\n",
    "ffffffff81234574 __ftrace_invalid_address___64 [m]\n",
    "0x10-0x20\tf\n",
    "0x18-0x30\tg\n",
    "0x30-0x31 h\n",
    "0xffffffff81234560-0xffffffff81234570\tx [m]\n",
    "[none] integrity",
    "none [integrity]",
};

size_t CountLines(std::string_view text) {
  const size_t ends =
      static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  return ends + (!text.empty() && text.back() != '\n');
}

ListFile OpenList(const MemFile& file, KernelFile kind) {
  KernelFiles files;
  files.Override(kind, file.path());
  absl::StatusOr<ListFile> list = ListFile::Open(files, kind);
  if (!list.ok()) std::abort();
  return *std::move(list);
}

void CheckFilterList(std::string_view text, bool with_addrs) {
  const MemFile file(text);
  ListFile list = OpenList(file, KernelFile::kFilterFunctions);
  size_t visited = 0;
  uint64_t malformed = 0;
  const absl::Status status = ReadFilterFuncs(
      &list, with_addrs,
      [&visited](const FilterFunc& func) {
        FuzzCheck(!func.name.empty(), "functions have names");
        FuzzCheck(func.name.find('\n') == std::string_view::npos &&
                      func.module.find('\n') == std::string_view::npos,
                  "names are of one line", func.name);
        ++visited;
        return true;
      },
      &malformed);
  FuzzCheck(status.ok(), "the list can be read");

  size_t want = 0, want_malformed = 0;
  for (std::string_view rest = text; !rest.empty();) {
    FilterFunc func;
    if (!ParseFilterFunc(TakePart(&rest, '\n'), with_addrs, &func)) {
      ++want_malformed;
    } else if (func.name.rfind("__ftrace_invalid_address___", 0) != 0) {
      ++want;
    }
  }
  FuzzCheck(visited == want, "each function is visited", text);
  FuzzCheck(malformed == want_malformed, "each other line counts", text);
  FuzzCheck(visited + malformed <= CountLines(text), "no line counts twice");
}

void CheckBlacklist(std::string_view text) {
  const MemFile file(text);
  ListFile list = OpenList(file, KernelFile::kBlacklist);
  const absl::StatusOr<Blacklist> blacklist = Blacklist::Read(&list);
  FuzzCheck(blacklist.ok(), "the blacklist can be read");

  std::vector<AddrRange> ranges;
  for (std::string_view rest = text; !rest.empty();) {
    AddrRange range;
    if (ParseBlacklistLine(TakePart(&rest, '\n'), &range)) {
      ranges.push_back(range);
    }
  }
  const auto listed = [&ranges](uint64_t addr) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [addr](const AddrRange& range) {
                         return range.begin <= addr && addr < range.end;
                       });
  };
  for (const AddrRange& range : ranges) {
    for (uint64_t addr : {range.begin - 1, range.begin, range.begin + 1,
                          range.end - 1, range.end, range.end + 1}) {
      FuzzCheck(blacklist->Contains(addr) == listed(addr),
                "in the list as in one of its ranges", text);
    }
  }
}

}  // namespace

std::string MakeFuzzInput(std::mt19937* rng) {
  const char list = static_cast<char>((*rng)());
  return list + RandomWords(kWords, (*rng)() % 2 == 0 ? 5 : 60, rng);
}

}  // namespace ksweep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text = ksweep::FuzzText(data + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      ksweep::CheckFilterList(text, /*with_addrs=*/false);
      break;
    case 1:
      ksweep::CheckFilterList(text, /*with_addrs=*/true);
      break;
    case 2:
      ksweep::CheckBlacklist(text);
      break;
    default:
      ksweep::ParseLockdown(text);
  }
  return 0;
}
