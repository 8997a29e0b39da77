#include "selftests/kernel/kernel_test_util.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "count.skel.h"
#include "gtest/gtest.h"
#include "lib/base/glob.h"

namespace ksweep::testing {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

bool IsDefaultDenied(const std::string& name) {
  for (const DefaultDeny& entry : DefaultDenyList()) {
    if (GlobMatch(entry.pattern, name)) return true;
  }
  return false;
}

Kind FirstKindOf(const Resolution& resolution) {
  int kind = 0;
  while (kind + 1 < kKindCnt &&
         !resolution.kinds().Has(static_cast<Kind>(kind))) {
    ++kind;
  }
  return static_cast<Kind>(kind);
}

}  // namespace

bool KernelHas(std::string_view option) {
  const char* path = getenv("KSWEEP_KERNEL_CONFIG");
  const std::string config = path == nullptr ? "" : ReadText(path);
  if (config.empty()) {
    ADD_FAILURE() << "KSWEEP_KERNEL_CONFIG does not name the kernel's config";
    return false;
  }
  const std::string name = "\n" + std::string(option) + "=";
  return config.find(name + "y") != std::string::npos ||
         config.find(name + "m") != std::string::npos;
}

bool KernelHasTracingMulti() {
  btf* kernel_btf = btf__load_vmlinux_btf();
  EXPECT_NE(kernel_btf, nullptr);
  const bool has = btf__find_by_name_kind(kernel_btf, "bpf_tracing_multi_link",
                                          BTF_KIND_STRUCT) > 0;
  btf__free(kernel_btf);
  return has;
}

std::vector<Request> ParseRequestTexts(const std::vector<std::string>& texts) {
  std::vector<Request> requests;
  for (const std::string& text : texts) {
    absl::StatusOr<Request> request = Request::Parse(text);
    if (!request.ok()) ADD_FAILURE() << request.status();
    if (request.ok()) requests.push_back(*std::move(request));
  }
  return requests;
}

Resolution ResolveHere(const std::vector<std::string>& requests,
                       const ResolveOptions& options,
                       const KernelFiles& files) {
  absl::StatusOr<Resolution> resolution =
      Resolve(ParseRequestTexts(requests), files, options);
  if (resolution.ok()) return *std::move(resolution);
  ADD_FAILURE() << resolution.status();
  return Resolution();
}

std::unique_ptr<Counter> Counter::Load(Kind kind, size_t slots) {
  return LoadPrepared(
      [kind](bpf_program* prog) -> absl::StatusOr<KindChoice> {
        const absl::Status prepared = PrepareProgram(prog, kind);
        if (!prepared.ok()) return prepared;
        return KindChoice{kind, ""};
      },
      slots);
}

std::unique_ptr<Counter> Counter::Load(Kind kind,
                                       const Resolution& resolution) {
  return LoadPrepared(
      [&](bpf_program* prog) -> absl::StatusOr<KindChoice> {
        const absl::Status prepared = PrepareProgram(prog, kind, resolution);
        if (!prepared.ok()) return prepared;
        return KindChoice{kind, ""};
      },
      resolution.targets().size());
}

std::unique_ptr<Counter> Counter::LoadAuto(size_t slots) {
  return LoadPrepared(
      [](bpf_program* prog) { return PrepareProgram(prog, kAuto); }, slots);
}

std::unique_ptr<Counter> Counter::Open() {
  std::unique_ptr<Counter> counter(new Counter());
  counter->skeleton_ = count_bpf__open();
  if (counter->skeleton_ != nullptr) return counter;
  ADD_FAILURE() << "cannot open the BPF object";
  return nullptr;
}

bool Counter::LoadOpened(size_t slots) {
  bpf_map__set_max_entries(skeleton_->maps.hits, static_cast<uint32_t>(slots));
  const int error = count_bpf__load(skeleton_);
  if (error != 0) ADD_FAILURE() << "cannot load the BPF object: " << error;
  return error == 0;
}

std::unique_ptr<Counter> Counter::LoadPrepared(
    const std::function<absl::StatusOr<KindChoice>(bpf_program*)>& prepare,
    size_t slots) {
  std::unique_ptr<Counter> counter = Open();
  if (counter == nullptr) return nullptr;
  absl::StatusOr<KindChoice> choice = prepare(counter->program());
  if (!choice.ok()) {
    ADD_FAILURE() << choice.status();
    return nullptr;
  }
  counter->choice_ = *std::move(choice);
  if (!counter->LoadOpened(slots)) return nullptr;
  return counter;
}

Counter::~Counter() { count_bpf__destroy(skeleton_); }

bpf_program* Counter::program() const { return skeleton_->progs.count; }

void Counter::OnlyThisProcess() {
  skeleton_->bss->only_pid = static_cast<uint32_t>(getpid());
}

void Counter::AllProcesses() { skeleton_->bss->only_pid = 0; }

Hit Counter::At(uint32_t slot) const {
  Hit hit;
  EXPECT_EQ(bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.hits), &slot, &hit),
            0)
      << slot;
  return hit;
}

uint64_t Counter::all_hits() const { return skeleton_->bss->all_hits; }

uint64_t Counter::bad_cookies() const { return skeleton_->bss->bad_cookies; }

absl::StatusOr<Counting> AttachCounter(const Resolution& resolution,
                                       Calls calls,
                                       const AttachOptions& options) {
  std::unique_ptr<Counter> counter =
      Counter::Load(FirstKindOf(resolution), resolution);
  if (counter == nullptr) return absl::InternalError("no counting program");
  if (calls == Calls::kThisProcess) counter->OnlyThisProcess();
  absl::StatusOr<Attachment> attachment =
      Attach(resolution, counter->program(), options);
  if (!attachment.ok()) return attachment.status();
  return Counting{std::move(counter), *std::move(attachment)};
}

void TriggerGetppid(int cnt) {
  for (int i = 0; i < cnt; ++i) syscall(SYS_getppid);
}

std::vector<ListedFunc> ListedFuncs() {
  std::vector<ListedFunc> funcs;
  std::ifstream list("/sys/kernel/tracing/available_filter_functions");
  std::string line;
  while (std::getline(list, line)) {
    std::istringstream words(line);
    ListedFunc func;
    words >> func.name >> func.module;
    if (func.name.rfind("__ftrace_invalid_address___", 0) == 0) continue;
    if (IsDefaultDenied(func.name)) continue;
    funcs.push_back(func);
  }
  return funcs;
}

ScopedSetting::ScopedSetting(std::string path, const std::string& value)
    : path_(std::move(path)), before_(ReadText(path_)) {
  std::ofstream out(path_);
  out << value;
  out.close();
  EXPECT_TRUE(out.good()) << path_;
}

ScopedSetting::~ScopedSetting() {
  std::ofstream out(path_);
  out << before_;
}

}  // namespace ksweep::testing
