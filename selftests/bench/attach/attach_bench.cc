// How long it takes to attach to all functions of the running kernel, and to
// detach: the attach benchmark of the kernel's selftests (prog_tests/
// kprobe_multi_test.c), with the functions from ksweep::Resolve().
//
//   attach_bench                all parts but the last two
//   attach_bench --runs         all functions in one link, for each kind
//   attach_bench --ways         the core kernel in one link, in links of 1000,
//                               and function by function, with ratios
//   attach_bench --separate     50 links of one function each
//   attach_bench --btf          100 to all functions by BTF id: a look through
//                               kallsyms for each, fentry, fentry.multi
//   attach_bench --libbpf       libbpf's own pattern attach, `*` and `vfs_*`,
//                               with the libbpf that the loader finds
//   attach_bench --json …       the same as one JSON object
//   attach_bench --smoke …      of few functions, as a test
//
// Needs root and attaches to every function, so that run_attach_bench runs it
// in VMs. Reading the kernel's lists is part of "resolved", and the kernel
// searches a module's symbols one by one: for each line of the list, and for
// each start of a function that is attached. libbpf attaches at the ftrace
// locations instead, which costs it the cookies.
//
// A perf event for each function is made for 500 of them, and its times are
// reckoned for all. With separate links one resolve serves all 50, and every
// list is read once. README.md has these tables of two kernels.
//
//   $ selftests/bench/run_attach_bench --kernel=trixie-backports --many
//   Linux 7.3.4+deb13-cloud-amd64, libbpf v1.1
//   kprobe.multi, core, by name:
//     found 43932 names of 44262 functions
//     resolved in 1.769 s / attached in 0.997 s / detached in 0.349 s
//   kprobe.multi, modules, by name:
//     found 30449 names of 30530 functions
//     resolved in 8.146 s / attached in 13.747 s / detached in 0.171 s
//   kprobe.multi, core, by address:
//     found 44262 functions (44428 listed, 166 denied, 0 placeholders)
//     resolved in 1.755 s / attached in 0.665 s / detached in 0.357 s
//   kprobe.multi, modules, by address:
//     found 30530 functions (30549 listed, 1 denied, 18 placeholders)
//     resolved in 8.144 s / attached in 8.990 s / detached in 0.175 s
//   kprobe.multi, core and modules, by address:
//     found 74792 functions (74977 listed, 167 denied, 18 placeholders)
//     resolved in 8.307 s / attached in 9.954 s / detached in 0.530 s
//   kretprobe.multi, core and modules, by address:
//     found 74792 functions (74977 listed, 167 denied, 18 placeholders)
//     resolved in 8.323 s / attached in 10.390 s / detached in 0.665 s
//   Linux 7.3.4+deb13-cloud-amd64, libbpf v1.4
//   libbpf v1.4, pattern '*':
//     found 74977 functions
//     resolved and attached in 8.462 s / detached in 0.596 s
//   libbpf v1.4, pattern 'vfs_*':
//     found 79 functions
//     resolved and attached in 7.198 s / detached in 0.012 s
//   Linux 7.3.4+deb13-cloud-amd64, libbpf v1.1
//   libbpf v1.1, pattern '*':
//     refused after 2.019 s: Cannot allocate memory (errno 12)
//   libbpf v1.1, pattern 'vfs_*':
//     refused after 1.950 s: No such file or directory (errno 2)
//
// Exit code 1 if a run fails, or if it does not attach to exactly what the
// kernel's filter list offers less its placeholders and the default deny list;
// that libbpf is refused is a result, too.

#include <cstdlib>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "selftests/bench/attach/amount.h"
#include "selftests/bench/attach/btf.h"
#include "selftests/bench/attach/libbpf_patterns.h"
#include "selftests/bench/attach/report.h"
#include "selftests/bench/attach/runs.h"
#include "selftests/bench/attach/separate_links.h"
#include "selftests/bench/attach/ways.h"

namespace ksweep::bench {
namespace {

// Something to measure that can be asked for by its flag.
struct Part {
  std::string_view flag;
  bool by_default = true;  // if no flag asks for a part
  bool (*measure)(const Amount& amount, Report* report) = nullptr;
};

// One more is a file and a row here, and in run_attach_bench.
constexpr Part kParts[] = {
    {"--runs", true, MeasureRuns},
    {"--ways", true, MeasureWays},
    {"--separate", true, MeasureSeparateLinks},
    {"--btf", false, MeasureBtf},
    {"--libbpf", false, MeasureLibbpfPatterns},
};

struct Flags {
  std::vector<const Part*> parts;
  bool json = false;
  bool smoke = false;
};

[[noreturn]] void Usage() {
  absl::FPrintF(stderr, "usage: attach_bench");
  for (const Part& part : kParts) {
    absl::FPrintF(stderr, " [%s]", Av(part.flag));
  }
  absl::FPrintF(stderr, " [--json] [--smoke]\n");
  exit(2);
}

const Part* FindPart(std::string_view flag) {
  for (const Part& part : kParts) {
    if (part.flag == flag) return &part;
  }
  return nullptr;
}

void AddDefaultParts(Flags* flags) {
  for (const Part& part : kParts) {
    if (part.by_default) flags->parts.push_back(&part);
  }
}

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--json") {
      flags.json = true;
    } else if (arg == "--smoke") {
      flags.smoke = true;
    } else if (const Part* part = FindPart(arg)) {
      flags.parts.push_back(part);
    } else {
      Usage();
    }
  }
  if (flags.parts.empty()) AddDefaultParts(&flags);
  return flags;
}

int Main(const Flags& flags) {
  const Amount amount = flags.smoke ? kSmoke : Amount();
  Report report(flags.json);
  bool ok = true;
  for (const Part* part : flags.parts) ok &= part->measure(amount, &report);
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace ksweep::bench

int main(int argc, char** argv) {
  return ksweep::bench::Main(ksweep::bench::ParseFlags(argc, argv));
}
