// Input: a byte of options, then, parted by form feeds, requests, kallsyms, a
// filter list and a blacklist.

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ksweep/resolve.h"
#include "selftests/fuzz/fuzz_target.h"

namespace ksweep {
namespace {

constexpr std::string_view kRequests[] = {
    "vfs_read\n",
    "vfs_write\n",
    "vfs_*\n",
    "*\n",
    "*_*\n",
    "m:*\n",
    "m:m_func\n",
    "n:vfs_*\n",
    "[m-n]:*\n",
    "vmlinux:vfs_write\n",
    "vmlinux:*\n",
    "nothing\n",
    "nomodule:x\n",
    "!*_write\n",
    "!m:*\n",
    "!vfs_read\n",
    "!0xffffffff81000020\n",
    "0xffffffff81000010\n",
    "0xffffffff81000020\n",
    "0xffffffff81000024\n",
    "0xffffffffc0000004\n",
    "syscall:openat\n",
    "*.[ic]*\n",
    "m_func.isra.0\n",
    "bpf_prog_1\n",
    "vfs_read.cold\n",
    "takes:sk_buff\n",
    "btf:7\n",
};

constexpr std::string_view kSymbols[] = {
    "ffffffff81000000 T _stext\n",
    "ffffffff81000010 t vfs_read\n",
    "ffffffff81000010 T vfs_read_alias\n",
    "ffffffff81000010 W vfs_read\n",
    "ffffffff81000020 W vfs_write\n",
    "ffffffff81000020 d vfs_write\n",
    "ffffffff81000030 t vfs_read.isra.0\n",
    "ffffffff81000040 t vfs_read.cold\n",
    "ffffffff81000050 t vfs_write.llvm.123\n",
    "ffffffff81000058 t vfs_read\n",
    "ffffffff81000060 t __pfx_vfs_read\n",
    "ffffffff81000070 T __x64_sys_openat\n",
    "ffffffff81000080 T __ia32_sys_openat\n",
    "ffffffff81a00000 T _etext\n",
    "ffffffff82000000 T __init_begin\n",
    "ffffffff82000010 t vfs_init\n",
    "ffffffff83000000 T __init_end\n",
    "0000000000000000 t vfs_read\n",
    "0000000000000000 t vfs_write\n",
    "0000000000000000 A fixed_percpu_data\n",
    "c0100000 t vfs_short\n",
    "ffffffffc0000000 t vfs_read\t[m]\n",
    "ffffffffc0000010 t m_func\t[m]\n",
    "ffffffffc0000010 t m_alias\t[m]\n",
    "ffffffffc0000020 t m_func.isra.0\t[m]\n",
    "ffffffffc0001000 t vfs_write\t[n]\n",
    "ffffffffc0002000 t bpf_prog_1\t[bpf]\n",
    "ffffffff81000010",
    " ",
    " t ",
    "\t",
    "\n",
};

constexpr std::string_view kFilterFuncs[] = {
    "vfs_read\n",
    "vfs_write\n",
    "vfs_read [m]\n",
    "m_func [m]\n",
    "__ftrace_invalid_address___64\n",
    "ffffffff81000014 vfs_read\n",
    "ffffffff81000010 vfs_read_alias\n",
    "ffffffff81000024 vfs_write\n",
    "ffffffff81000030 vfs_read.isra.0\n",
    "ffffffff8100005c vfs_read\n",
    "ffffffff81000074 __x64_sys_openat\n",
    "ffffffff82000014 vfs_init\n",
    "ffffffffc0000004 vfs_read [m]\n",
    "ffffffffc0000014 m_func [m]\n",
    "ffffffffc0001004 vfs_write [n]\n",
    "ffffffff81000064 __ftrace_invalid_address___64\n",
    "ffffffff81000094 elsewhere\n",
    " ",
    "\n",
};

constexpr std::string_view kRanges[] = {
    "0xffffffff81000010-0xffffffff81000020\tvfs_read\n",
    "0xffffffffc0000000-0xffffffffc0000100\tm_func [m]\n",
    "0x0000000000000000-0x0000000000000000\tx\n",
    "-",
    "\n",
};

struct Input {
  std::vector<Request> requests;
  std::string kallsyms, list, blacklist;
  ResolveOptions options;
  bool has_list = false;
  bool with_addrs = false;
};

Input ParseInput(std::string_view text) {
  Input input;
  const uint8_t bits = text.empty() ? 0 : static_cast<uint8_t>(text[0]);
  text.remove_prefix(text.empty() ? 0 : 1);
  const std::string_view requests = TakePart(&text, '\f');
  input.kallsyms = std::string(TakePart(&text, '\f'));
  input.has_list = !text.empty();
  input.list = std::string(TakePart(&text, '\f'));
  input.blacklist = std::string(TakePart(&text, '\f'));

  absl::StatusOr<std::vector<Request>> parsed = ParseRequests(requests, "fuzz");
  if (parsed.ok() && !parsed->empty()) {
    input.requests = *std::move(parsed);
  } else {
    for (const char* request : {"vfs_*", "vfs_read", "m:m_func"}) {
      input.requests.push_back(*Request::Parse(request));
    }
  }
  input.options.missing = OnMissing::kReport;
  input.options.untested = bits & 1 ? Untested::kTry : Untested::kRefuse;
  input.options.clones = bits & 2;
  input.options.default_deny = bits & 4;
  input.options.stop_early = bits & 8;
  input.with_addrs = bits & 16;
  if (bits & 32) input.options.kinds.Add(Kind::kKprobe);
  if (bits & 64) input.options.kinds.Remove(Kind::kKprobeMulti);
  return input;
}

absl::StatusOr<Resolution> Run(const Input& input) {
  const MemFile kallsyms(input.kallsyms);
  const MemFile list(input.list);
  const MemFile blacklist(input.blacklist);
  KernelFiles files("/nonexistent");
  files.Override(KernelFile::kKallsyms, kallsyms.path())
      .Override(KernelFile::kBlacklist, blacklist.path());
  if (input.has_list) {
    files.Override(input.with_addrs ? KernelFile::kFilterFunctionsAddrs
                                    : KernelFile::kFilterFunctions,
                   list.path());
  }
  return Resolve(input.requests, files, input.options);
}

void CheckTarget(const Target& target) {
  FuzzCheck(!target.name.empty(), "targets have names");
  FuzzCheck(!target.kinds.empty(), "targets fit some kind", target.name);
  FuzzCheck(!target.requests.empty(), "targets serve a request", target.name);
  FuzzCheck(std::is_sorted(target.requests.begin(), target.requests.end()),
            "requests of a target ascend", target.name);
}

void CheckTargets(const Resolution& resolution) {
  uint64_t last = 0;
  for (const Target& target : resolution.targets()) {
    CheckTarget(target);
    if (resolution.by_name()) continue;
    FuzzCheck(last < target.addr,
              "targets are in address order, no address twice", target.name);
    last = target.addr;
  }
  if (resolution.by_name()) return;
  for (const Target& target : resolution.targets()) {
    const absl::StatusOr<const Target*> found =
        resolution.FindByIp(target.addr);
    FuzzCheck(found.ok() && *found == &target, "targets are found by address",
              target.name);
  }
}

void CheckEveryRequestIsAnswered(const Resolution& resolution) {
  for (uint32_t i = 0; i < resolution.requests().size(); ++i) {
    const Request& request = resolution.requests()[i];
    const auto& unmatched = resolution.unmatched();
    const bool named =
        std::any_of(unmatched.begin(), unmatched.end(),
                    [i](const Unmatched& row) { return row.request == i; });
    const bool served = !resolution.ForRequest(i).empty();
    FuzzCheck(!(named && served), "unmatched requests serve no target",
              request.ToString());
    FuzzCheck(request.deny() || named || served, "each request has an answer",
              request.ToString());
  }
}

// All that a resolution says, without the order of its requests.
std::string Describe(const Resolution& resolution) {
  std::vector<std::string> rows;
  const auto text_of = [&resolution](uint32_t request) {
    return resolution.requests()[request].ToString();
  };
  for (const Target& target : resolution.targets()) {
    std::vector<std::string> requests;
    for (uint32_t request : target.requests) {
      requests.push_back(text_of(request));
    }
    std::sort(requests.begin(), requests.end());
    std::string row = absl::StrFormat(
        "target %x %c %s %s clone=%d untested=%d", target.addr, target.type,
        std::string(target.name), std::string(target.module), target.clone,
        target.untested);
    for (std::string_view alias : target.aliases) {
      row += " alias=" + std::string(alias);
    }
    for (const std::string& request : requests) row += " for=" + request;
    rows.push_back(row);
  }
  for (const Omission& omission : resolution.omissions()) {
    rows.push_back(absl::StrFormat("omission %x %s %s %s", omission.addr,
                                   std::string(omission.name),
                                   std::string(omission.module),
                                   std::string(ReasonName(omission.reason))));
  }
  for (const Unmatched& unmatched : resolution.unmatched()) {
    rows.push_back("unmatched " + text_of(unmatched.request) + " " +
                   std::string(ReasonName(unmatched.reason)));
  }
  std::sort(rows.begin(), rows.end());
  std::string text;
  for (const std::string& row : rows) text += row + "\n";
  return text;
}

std::string Describe(const absl::StatusOr<Resolution>& resolution) {
  if (resolution.ok()) return Describe(*resolution);
  return absl::StatusCodeToString(resolution.status().code());
}

void CheckOrderOfRequests(Input input, const std::string& want) {
  std::reverse(input.requests.begin(), input.requests.end());
  const std::string got = Describe(Run(input));
  FuzzCheck(got == want, "the order of requests does not matter",
            want + "reversed:\n" + got);
}

std::string ReverseLines(std::string_view text) {
  std::string reversed;
  while (!text.empty()) {
    reversed.insert(0, std::string(TakePart(&text, '\n')) + "\n");
  }
  return reversed;
}

// Where the kernel's text starts and ends is told by symbols that it has once;
// with two of them it depends on which is taken.
bool HasMarkerTwice(std::string_view kallsyms) {
  for (std::string_view marker :
       {" _stext\n", " _etext\n", " __init_begin\n", " __init_end\n"}) {
    const size_t first = kallsyms.find(marker);
    if (first != std::string_view::npos &&
        kallsyms.find(marker, first + 1) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

void CheckOrderOfLines(Input input, const std::string& want) {
  if (input.options.stop_early || HasMarkerTwice(input.kallsyms)) return;
  input.kallsyms = ReverseLines(input.kallsyms);
  const std::string got = Describe(Run(input));
  FuzzCheck(got == want, "the order of kallsyms does not matter",
            want + "reversed:\n" + got);
}

void CheckError(const absl::Status& status) {
  FuzzCheck(absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
                absl::IsPermissionDenied(status) ||
                absl::IsFailedPrecondition(status) ||
                absl::IsResourceExhausted(status),
            "errors have one of the codes", status.ToString());
}

}  // namespace

std::string MakeFuzzInput(std::mt19937* rng) {
  std::string input(1, static_cast<char>((*rng)()));
  input += RandomWords(kRequests, 4, rng) + "\f";
  input += RandomWords(kSymbols, (*rng)() % 2 == 0 ? 6 : 60, rng);
  if ((*rng)() % 8 == 0) return input;
  input += "\f" + RandomWords(kFilterFuncs, 20, rng);
  return input + "\f" + RandomWords(kRanges, 3, rng);
}

}  // namespace ksweep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ksweep::Input input = ksweep::ParseInput(ksweep::FuzzText(data, size));
  const absl::StatusOr<ksweep::Resolution> resolution = ksweep::Run(input);
  if (resolution.ok()) {
    ksweep::CheckTargets(*resolution);
    ksweep::CheckEveryRequestIsAnswered(*resolution);
  } else {
    ksweep::CheckError(resolution.status());
  }
  const std::string description = ksweep::Describe(resolution);
  ksweep::CheckOrderOfRequests(input, description);
  ksweep::CheckOrderOfLines(input, description);
  return 0;
}
