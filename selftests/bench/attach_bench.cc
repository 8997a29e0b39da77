// How long it takes to attach to all functions of the running kernel, and to
// detach: the attach benchmark of the kernel's selftests (prog_tests/
// kprobe_multi_test.c), with the functions from ksweep::Resolve().
//
//   attach_bench                all runs of ksweep
//   attach_bench --libbpf       libbpf's own pattern attach instead, `*` and
//                               `vfs_*`, with the libbpf that the loader finds
//   attach_bench --json         the same as one JSON object
//
// Needs root and attaches to every function, so that run_attach_bench runs it
// in VMs. Reading the kernel's lists is part of "resolved", and the kernel
// searches a module's symbols one by one: for each line of the list, and for
// each start of a function that is attached. libbpf attaches at the ftrace
// locations instead, which costs it the cookies.
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

#include <bpf/libbpf.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "attach_bench.skel.h"
#include "ksweep/attach.h"
#include "ksweep/resolve.h"
#include "lib/attach/kprobe_multi.h"
#include "lib/attach/prepare.h"
#include "lib/base/abseil.h"
#include "lib/attach/link_info.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/clock.h"
#include "lib/base/errno_status.h"
#include "lib/base/glob.h"

namespace ksweep::bench {
namespace {

struct Flags {
  bool libbpf = false;
  bool json = false;
};

enum class Scope : uint8_t { kCore, kModules, kAll };

struct Run {
  Scope scope = Scope::kAll;
  bool by_name = false;
  Kind kind = Kind::kKprobeMulti;
};

// The first four are those of the kernel's selftests.
constexpr Run kRuns[] = {
    {Scope::kCore, true, Kind::kKprobeMulti},
    {Scope::kModules, true, Kind::kKprobeMulti},
    {Scope::kCore, false, Kind::kKprobeMulti},
    {Scope::kModules, false, Kind::kKprobeMulti},
    {Scope::kAll, false, Kind::kKprobeMulti},
    {Scope::kAll, false, Kind::kKretprobeMulti},
};

constexpr char kFilterList[] = "/sys/kernel/tracing/available_filter_functions";

constexpr const char* kLibbpfPatterns[] = {"*", "vfs_*"};

std::string_view ScopeName(Scope scope) {
  switch (scope) {
    case Scope::kCore:
      return "core";
    case Scope::kModules:
      return "modules";
    case Scope::kAll:
      break;
  }
  return "core and modules";
}

std::string_view ScopeRequest(Scope scope) {
  switch (scope) {
    case Scope::kCore:
      return "vmlinux:*";
    case Scope::kModules:
      return "*:*";
    case Scope::kAll:
      break;
  }
  return "*";
}

// Lines of the kernel's filter list, counted without the library's reader.
struct ListCounts {
  uint64_t lines = 0;
  uint64_t placeholders = 0;
  uint64_t denied = 0;

  uint64_t wanted() const { return lines - placeholders - denied; }
};

struct FilterList {
  ListCounts core;
  ListCounts modules;

  ListCounts Of(Scope scope) const {
    if (scope == Scope::kCore) return core;
    if (scope == Scope::kModules) return modules;
    return {core.lines + modules.lines,
            core.placeholders + modules.placeholders,
            core.denied + modules.denied};
  }
};

std::string ListText(const ListCounts& list) {
  return absl::StrFormat("%d listed, %d denied, %d placeholders", list.lines,
                         list.denied, list.placeholders);
}

bool IsDefaultDenied(std::string_view name) {
  for (const DefaultDeny& entry : DefaultDenyList()) {
    if (GlobMatch(entry.pattern, name)) return true;
  }
  return false;
}

void CountLine(std::string_view line, FilterList* list) {
  const std::string_view name = line.substr(0, line.find_first_of(" \t"));
  const bool of_module = line.find('[') != std::string_view::npos;
  ListCounts& counts = of_module ? list->modules : list->core;
  ++counts.lines;
  if (name.starts_with("__ftrace_invalid_address__")) {
    ++counts.placeholders;
  } else if (IsDefaultDenied(name)) {
    ++counts.denied;
  }
}

FilterList CountFilterList() {
  FilterList list;
  std::ifstream in(kFilterList);
  for (std::string line; std::getline(in, line);) CountLine(line, &list);
  return list;
}

// The program that is attached.
class Nothing {
 public:
  static absl::StatusOr<Nothing> Load(Kind kind) {
    Nothing nothing;
    if (nothing.bpf_ == nullptr) return ErrnoStatus(errno, "no BPF object");
    absl::Status status = PrepareProgram(nothing.prog(), kind);
    if (!status.ok()) return status;
    const int err = attach_bench_bpf__load(nothing.bpf_.get());
    if (err != 0) return ErrnoStatus(-err, "loading the program");
    return nothing;
  }

  bpf_program* prog() const { return bpf_->progs.nothing; }

 private:
  struct Destroy {
    void operator()(attach_bench_bpf* bpf) const {
      attach_bench_bpf__destroy(bpf);
    }
  };

  Nothing() : bpf_(attach_bench_bpf__open()) {}

  std::unique_ptr<attach_bench_bpf, Destroy> bpf_;
};

// The kernel does some of the work of a boot and of a detach later.
void Settle() { sleep(2); }

// What a link tells of its functions; 0 before Linux 6.6.
uint64_t AskForCount(int link_fd) {
  const absl::StatusOr<LinkInfo> info =
      ReadLinkInfo(BpfSys::Kernel(), link_fd, LinkDetail::kCounts);
  return info.ok() ? info->cnt : 0;
}

struct Result {
  uint64_t targets = 0;
  uint64_t functions = 0;  // attached to; fewer than targets by name
  uint64_t in_link = 0;    // as the kernel counts
  int64_t resolve_ns = 0;
  int64_t attach_ns = 0;
  int64_t detach_ns = 0;
};

absl::StatusOr<Resolution> ResolveScope(const Run& run) {
  absl::StatusOr<Request> request = Request::Parse(ScopeRequest(run.scope));
  if (!request.ok()) return request.status();
  ResolveOptions options;
  options.kinds = {run.kind};
  return Resolve({*std::move(request)}, KernelFiles(), options);
}

// `attached` is a Link or an Attachment.
template <typename Attached>
absl::Status Detach(Attached* attached, Result* result) {
  const int64_t start = NowNs();
  absl::Status status = attached->Detach();
  result->detach_ns = NowNs() - start;
  return status;
}

absl::Status AttachByAddress(const Resolution& resolution,
                             const bpf_program* prog, Kind kind,
                             Result* result) {
  AttachOptions options;
  options.kind = kind;
  const int64_t start = NowNs();
  absl::StatusOr<Attachment> attachment = Attach(resolution, prog, options);
  result->attach_ns = NowNs() - start;
  if (!attachment.ok()) return attachment.status();
  if (attachment->links().size() != 1) {
    return absl::InternalError(absl::StrFormat(
        "attached by %d links instead of one", attachment->links().size()));
  }
  result->functions = attachment->targets().size();
  result->in_link = AskForCount(attachment->links().front().fd());
  return Detach(&*attachment, result);
}

// Each name once, whatever has it: given twice, the kernel finds neither.
std::vector<std::string_view> DistinctNames(const Resolution& resolution) {
  absl::flat_hash_set<std::string_view> seen;
  std::vector<std::string_view> names;
  for (const Target& target : resolution.targets()) {
    if (seen.insert(target.name).second) names.push_back(target.name);
  }
  return names;
}

// Attach() takes names only where the kernel hides addresses, so this makes the
// link itself.
absl::StatusOr<Link> LinkByName(const bpf_program* prog, Kind kind,
                                absl::Span<const std::string_view> names) {
  absl::StatusOr<KindAbi> abi = FindKindAbi(kind);
  if (!abi.ok()) return abi.status();
  std::vector<uint64_t> cookies(names.size());
  std::iota(cookies.begin(), cookies.end(), 0);
  KprobeMultiCall call;
  call.abi = *abi;
  call.prog_fd = bpf_program__fd(prog);
  call.names = names;
  call.cookies = cookies;
  return CreateKprobeMultiLink(BpfSys::Kernel(), call);
}

absl::Status AttachByName(const Resolution& resolution, const bpf_program* prog,
                          Kind kind, Result* result) {
  const std::vector<std::string_view> names = DistinctNames(resolution);
  const int64_t start = NowNs();
  absl::StatusOr<Link> link = LinkByName(prog, kind, names);
  result->attach_ns = NowNs() - start;
  if (!link.ok()) return link.status();
  result->functions = names.size();
  result->in_link = AskForCount(link->fd());
  return Detach(&*link, result);
}

absl::Status CheckCounts(const Run& run, const ListCounts& list,
                         const Result& result) {
  if (result.targets != list.wanted()) {
    return absl::InternalError(
        absl::StrFormat("resolved to %d functions instead of %d: %s",
                        result.targets, list.wanted(), ListText(list)));
  }
  if (!run.by_name && result.functions != result.targets) {
    return absl::InternalError(absl::StrFormat(
        "attached to %d of %d functions", result.functions, result.targets));
  }
  if (result.in_link != 0 && result.in_link != result.functions) {
    return absl::InternalError(
        absl::StrFormat("the kernel counts %d functions in the link of %d",
                        result.in_link, result.functions));
  }
  return absl::OkStatus();
}

absl::StatusOr<Result> Measure(const Run& run, const ListCounts& list) {
  absl::StatusOr<Nothing> nothing = Nothing::Load(run.kind);
  if (!nothing.ok()) return nothing.status();
  Settle();
  Result result;
  const int64_t start = NowNs();
  absl::StatusOr<Resolution> resolution = ResolveScope(run);
  result.resolve_ns = NowNs() - start;
  if (!resolution.ok()) return resolution.status();
  result.targets = resolution->targets().size();
  absl::Status status =
      run.by_name
          ? AttachByName(*resolution, nothing->prog(), run.kind, &result)
          : AttachByAddress(*resolution, nothing->prog(), run.kind, &result);
  if (status.ok()) status = CheckCounts(run, list, result);
  if (!status.ok()) return status;
  return result;
}

// What libbpf makes of a pattern. It reads the kernel's lists itself, so that
// attaching is all of it.
struct LibbpfResult {
  int err = 0;
  uint64_t in_link = 0;
  int64_t attach_ns = 0;
  int64_t detach_ns = 0;
};

absl::StatusOr<LibbpfResult> MeasureLibbpf(const char* pattern) {
  absl::StatusOr<Nothing> nothing = Nothing::Load(Kind::kKprobeMulti);
  if (!nothing.ok()) return nothing.status();
  Settle();
  LibbpfResult result;
  int64_t start = NowNs();
  bpf_link* link =
      bpf_program__attach_kprobe_multi_opts(nothing->prog(), pattern, nullptr);
  result.err = link == nullptr ? errno : 0;
  result.attach_ns = NowNs() - start;
  if (link == nullptr) return result;
  result.in_link = AskForCount(bpf_link__fd(link));
  start = NowNs();
  bpf_link__destroy(link);
  result.detach_ns = NowNs() - start;
  return result;
}

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

// Prints each outcome as it comes, for people or as a part of one JSON object.
class Report {
 public:
  explicit Report(bool json) : json_(json) {
    utsname name = {};
    uname(&name);
    if (json_) {
      absl::PrintF(R"({"kernel": "%s", "libbpf": "%s", "runs": [)",
                   name.release, libbpf_version_string());
    } else {
      absl::PrintF("Linux %s, libbpf %s\n", name.release,
                   libbpf_version_string());
    }
  }

  ~Report() {
    if (json_) absl::PrintF("]}\n");
  }

  void Add(std::string_view text, std::string_view json) {
    if (json_) {
      absl::PrintF("%s%s", first_ ? "" : ", ", Av(json));
    } else {
      absl::PrintF("%s\n", Av(text));
    }
    first_ = false;
    fflush(stdout);
  }

 private:
  const bool json_;
  bool first_ = true;
};

const char* By(const Run& run) { return run.by_name ? "name" : "address"; }

std::string Label(const Run& run) {
  return absl::StrFormat("%s, %s, by %s", Av(KindName(run.kind)),
                         Av(ScopeName(run.scope)), By(run));
}

std::string FoundText(const Run& run, const ListCounts& list,
                      const Result& result) {
  if (run.by_name) {
    return absl::StrFormat("%d names of %d functions", result.functions,
                           result.targets);
  }
  return absl::StrFormat("%d functions (%s)", result.functions, ListText(list));
}

std::string RunText(const Run& run, const ListCounts& list,
                    const Result& result) {
  return absl::StrFormat(
      "%s:\n"
      "  found %s\n"
      "  resolved in %.3f s / attached in %.3f s / detached in %.3f s",
      Label(run), FoundText(run, list, result), Seconds(result.resolve_ns),
      Seconds(result.attach_ns), Seconds(result.detach_ns));
}

std::string RunJson(const Run& run, const ListCounts& list,
                    const Result& result) {
  return absl::StrFormat(
      R"({"kind": "%s", "scope": "%s", "by": "%s", "listed": %d, )"
      R"("placeholders": %d, "denied": %d, "targets": %d, "functions": %d, )"
      R"("in_link": %d, "resolve_ns": %d, "attach_ns": %d, "detach_ns": %d})",
      Av(KindName(run.kind)), Av(ScopeName(run.scope)), By(run), list.lines,
      list.placeholders, list.denied, result.targets, result.functions,
      result.in_link, result.resolve_ns, result.attach_ns, result.detach_ns);
}

std::string LibbpfText(const char* pattern, const LibbpfResult& result) {
  const std::string what = absl::StrFormat(
      "libbpf %s, pattern '%s':", libbpf_version_string(), pattern);
  if (result.err != 0) {
    return absl::StrFormat("%s\n  refused after %.3f s: %s (errno %d)", what,
                           Seconds(result.attach_ns), ErrnoText(result.err),
                           result.err);
  }
  return absl::StrFormat(
      "%s\n  found %d functions\n"
      "  resolved and attached in %.3f s / detached in %.3f s",
      what, result.in_link, Seconds(result.attach_ns),
      Seconds(result.detach_ns));
}

std::string LibbpfJson(const char* pattern, const LibbpfResult& result) {
  return absl::StrFormat(
      R"({"pattern": "%s", "errno": %d, "in_link": %d, "attach_ns": %d, )"
      R"("detach_ns": %d})",
      pattern, result.err, result.in_link, result.attach_ns, result.detach_ns);
}

bool Fail(std::string_view what, const absl::Status& status) {
  absl::FPrintF(stderr, "attach_bench: %s: %s\n", Av(what), status.message());
  return false;
}

bool MeasureAndReport(const Run& run, const ListCounts& list, Report* report) {
  if (list.wanted() == 0) return true;  // no module is loaded
  const absl::StatusOr<Result> result = Measure(run, list);
  if (!result.ok()) return Fail(Label(run), result.status());
  report->Add(RunText(run, list, *result), RunJson(run, list, *result));
  return true;
}

bool MeasureKsweep(Report* report) {
  const FilterList list = CountFilterList();
  bool ok = true;
  if (list.core.lines == 0) {
    ok = Fail(kFilterList, absl::NotFoundError("no function in it; not root?"));
  }
  for (const Run& run : kRuns) {
    ok &= MeasureAndReport(run, list.Of(run.scope), report);
  }
  return ok;
}

bool MeasureLibbpfPatterns(Report* report) {
  // Its complaints about a refusal; the errno is reported.
  libbpf_set_print(nullptr);
  bool ok = true;
  for (const char* pattern : kLibbpfPatterns) {
    const absl::StatusOr<LibbpfResult> result = MeasureLibbpf(pattern);
    if (result.ok()) {
      report->Add(LibbpfText(pattern, *result), LibbpfJson(pattern, *result));
    } else {
      ok = Fail(pattern, result.status());
    }
  }
  return ok;
}

[[noreturn]] void Usage() {
  absl::FPrintF(stderr, "usage: attach_bench [--libbpf] [--json]\n");
  exit(2);
}

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--libbpf") {
      flags.libbpf = true;
    } else if (arg == "--json") {
      flags.json = true;
    } else {
      Usage();
    }
  }
  return flags;
}

int Main(const Flags& flags) {
  Report report(flags.json);
  const bool ok =
      flags.libbpf ? MeasureLibbpfPatterns(&report) : MeasureKsweep(&report);
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace ksweep::bench

int main(int argc, char** argv) {
  return ksweep::bench::Main(ksweep::bench::ParseFlags(argc, argv));
}
