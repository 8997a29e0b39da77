// Prints the arguments of each call of a handful of functions, with the names
// and types that BTF has for them.
//
//   $ sudo fentry_args --kind=fentry vfs_read security_file_permission
//       alloc_netdev_mqs
//   attached 3 functions in 3 links (resolved in 3231.1 ms, attached in 582.7
//       ms)
//   as fentry, which 3 of 3 targets fit; not fentry.multi (not among
//       ResolveOptions::kinds)
//
//   sh-275                security_file_permission(file=0xffff88807d551f00,
//   mask=4) grep-275              vfs_read(file=0xffff888005334000,
//   buf=0x22323a00,
//       count=4096, pos=0xffffc90000e47ba8)
//   ip-277                alloc_netdev_mqs(sizeof_priv=40, name="ks1",
//       name_assign_type=3, setup=0xffffffffc0401350, txqs=1, rxqs=1)
//   …
//   16 calls, 0 lost as the buffer was full
//
// By itself it is fentry.multi where the kernel has it, with one link, else
// fentry. Strings are read where they are in the kernel's memory; pointers to a
// process's, as buf, are printed. (Linux 7.3.4 in a virtual machine without
// hardware help: a real one is far faster.)

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "common/bpf_errors.h"
#include "common/end_signals.h"
#include "common/flags.h"
#include "common/json.h"
#include "common/output.h"
#include "common/progress.h"
#include "common/requests.h"
#include "common/table.h"
#include "common/tool.h"
#include "fentry_args.skel.h"
#include "fentry_args/call.h"
#include "fentry_args/prototype.h"
#include "ksweep/attach.h"
#include "ksweep/features.h"
#include "ksweep/resolve.h"

ABSL_FLAG(uint64_t, calls, 0, "end after that many calls; 0: never");

namespace examples {
namespace {

using ksweep::Kind;

constexpr std::string_view kUsage =
    R"(fentry_args [FLAG…] [--] REQUEST…
Prints the arguments of each call of the kernel functions that match, at most
100: numbers, pointers, strings, by name and type. Needs root and a kernel with
BTF. Flags and requests in any order.

Requests:
  vfs_read              that name: core kernel and modules
  tcp_*  vfs_?  [a-c]*  a glob on the whole name
  nf_tables:nft_*       a module part, itself a glob; vmlinux:x is the core only
  takes:sk_buff         functions with a parameter of that structure
  !pattern              leaves these out

Exit code: 0; 1 if it failed; 2 for wrong usage; 3 if this kernel cannot attach.)";

// Every call is printed: nobody reads those of more.
constexpr size_t kMaxFunctions = 100;

// The BPF program and its maps.
class Tracer {
 public:
  static absl::StatusOr<Tracer> Load(const ksweep::Resolution& resolution) {
    Tracer tracer;
    if (tracer.bpf_ == nullptr) return LoadError(errno);
    bpf_program* prog = tracer.prog();
    const absl::StatusOr<ksweep::KindChoice> choice =
        ksweep::PrepareProgram(prog, ksweep::kAuto, &resolution);
    if (!choice.ok()) return choice.status();
    tracer.choice_ = *choice;
    const ksweep::Feature feature =
        ksweep::Features::Running().Find(choice->kind);
    if (feature.support == ksweep::Support::kNo) {
      return absl::UnimplementedError(absl::StrFormat(
          "this kernel has no programs for BPF trampolines: "
          "%s; and not %s (%s)",
          choice->why, ksweep::KindName(choice->kind), feature.why));
    }
    tracer.bpf_->rodata->only_pid = absl::GetFlag(FLAGS_pid);
    tracer.bpf_->rodata->own_pid = static_cast<uint32_t>(getpid());
    int err = bpf_map__set_max_entries(
        tracer.bpf_->maps.specs,
        static_cast<uint32_t>(resolution.targets().size()));
    if (err == 0) err = fentry_args_bpf__load(tracer.bpf_.get());
    if (err != 0) return LoadError(-err);
    return tracer;
  }

  bpf_program* prog() const { return bpf_->progs.tell_args; }
  const ksweep::KindChoice& choice() const { return choice_; }
  int calls_fd() const { return bpf_map__fd(bpf_->maps.calls); }
  uint64_t lost() const { return bpf_->bss->lost; }

  absl::Status Start(const std::vector<Prototype>& prototypes) {
    for (uint32_t slot = 0; slot < prototypes.size(); ++slot) {
      const fentry_args_spec spec = prototypes[slot].Spec();
      const int err = bpf_map_update_elem(bpf_map__fd(bpf_->maps.specs), &slot,
                                          &spec, BPF_ANY);
      if (err == 0) continue;
      return absl::InternalError(absl::StrFormat(
          "cannot tell the BPF program the arguments: %s", strerror(-err)));
    }
    bpf_->bss->ready = true;
    return absl::OkStatus();
  }

  void Stop() { bpf_->bss->ready = false; }

 private:
  struct Destroy {
    void operator()(fentry_args_bpf* bpf) const {
      fentry_args_bpf__destroy(bpf);
    }
  };

  Tracer() : bpf_(fentry_args_bpf__open()) {}

  std::unique_ptr<fentry_args_bpf, Destroy> bpf_;
  ksweep::KindChoice choice_;
};

// Writes each call as a line, or collects them for --json.
class CallWriter {
 public:
  CallWriter(const ksweep::Attachment& attachment,
             std::vector<Prototype> prototypes)
      : attachment_(attachment), prototypes_(std::move(prototypes)) {
    json_.BeginObject();
    json_.Key("attached").Number(attachment.Report().attached);
    json_.Key("kind").String(ksweep::KindName(attachment.kind()));
    json_.Key("calls").BeginArray();
  }

  const std::vector<Prototype>& prototypes() const { return prototypes_; }
  uint64_t call_cnt() const { return call_cnt_; }

  void Add(const fentry_args_call& call) {
    if (call.slot >= prototypes_.size()) return;
    ++call_cnt_;
    const ksweep::Target& target = TargetOfSlot(attachment_, call.slot);
    const std::string_view comm(call.comm,
                                strnlen(call.comm, sizeof(call.comm)));
    const std::vector<Argument> arguments =
        ArgumentsOf(prototypes_[call.slot], call);
    if (absl::GetFlag(FLAGS_json)) {
      AddJson(call, target, comm, arguments);
      return;
    }
    absl::StrAppendFormat(&text_, "%-20s  %s(%s)\n",
                          absl::StrFormat("%s-%d", Printable(comm), call.pid),
                          Printable(target.name), ArgumentsText(arguments));
  }

  std::string TakeText() { return std::exchange(text_, ""); }

  std::string TakeJson(uint64_t lost) {
    json_.EndArray();
    json_.Key("lost").Number(lost);
    json_.EndObject();
    return json_.text() + "\n";
  }

 private:
  void AddJson(const fentry_args_call& call, const ksweep::Target& target,
               std::string_view comm, const std::vector<Argument>& arguments) {
    json_.Line();
    json_.BeginObject();
    json_.Key("time_ns").Number(call.time_ns);
    json_.Key("comm").String(comm);
    json_.Key("thread").Number(call.pid);
    json_.Key("function").String(target.name);
    json_.Key("module");
    target.module.empty() ? json_.Null() : json_.String(target.module);
    json_.Key("args").BeginArray();
    for (const Argument& argument : arguments) {
      json_.BeginObject();
      json_.Key("name").String(argument.name);
      json_.Key("value").String(argument.value);
      json_.EndObject();
    }
    json_.EndArray();
    json_.EndObject();
  }

  const ksweep::Attachment& attachment_;
  const std::vector<Prototype> prototypes_;  // by slot
  uint64_t call_cnt_ = 0;
  std::string text_;
  JsonWriter json_;
};

absl::StatusOr<std::vector<Prototype>> ReadPrototypes(
    const ksweep::Attachment& attachment) {
  absl::StatusOr<KernelBtf> kernel = KernelBtf::Load();
  if (!kernel.ok()) return kernel.status();
  std::vector<Prototype> prototypes;
  for (uint32_t slot = 0; slot < attachment.targets().size(); ++slot) {
    const ksweep::Target& target = TargetOfSlot(attachment, slot);
    const absl::StatusOr<const btf*> object = kernel->Of(target.module);
    if (!object.ok()) return object.status();
    absl::StatusOr<Prototype> prototype = PrototypeOf(**object, target.btf_id);
    if (!prototype.ok()) return prototype.status();
    prototypes.push_back(*std::move(prototype));
  }
  return prototypes;
}

struct FreeRing {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

int OnCall(void* writer, void* data, size_t) {
  static_cast<CallWriter*>(writer)->Add(
      *static_cast<const fentry_args_call*>(data));
  // libbpf reads as long as there is more, which may be always: so it pauses.
  return static_cast<CallWriter*>(writer)->call_cnt() % 1000 == 0 ? -EINTR : 0;
}

// Until the end of --duration, --calls or Ctrl-C. Cancelled if stdout cannot be
// written.
absl::Status PrintCalls(ring_buffer* ring, CallWriter& writer) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const std::chrono::duration<double> duration(absl::GetFlag(FLAGS_duration));
  const uint64_t max_calls = absl::GetFlag(FLAGS_calls);
  while (!EndSignalPending() && Clock::now() - start < duration) {
    constexpr int kMilliseconds = 50;
    ring_buffer__poll(ring, kMilliseconds);
    if (!WriteOut(writer.TakeText())) {
      return absl::CancelledError("stopped, as the output cannot be written");
    }
    if (max_calls > 0 && writer.call_cnt() >= max_calls) break;
  }
  return absl::OkStatus();
}

// Prints with what is attached, and detaches.
absl::Status Trace(Tracer& tracer, ksweep::Attachment& attachment,
                   Progress& progress) {
  absl::StatusOr<std::vector<Prototype>> prototypes =
      ReadPrototypes(attachment);
  if (!prototypes.ok()) return prototypes.status();
  CallWriter writer(attachment, *std::move(prototypes));
  const std::unique_ptr<ring_buffer, FreeRing> ring(
      ring_buffer__new(tracer.calls_fd(), OnCall, &writer, nullptr));
  if (ring == nullptr) {
    return absl::InternalError(
        absl::StrFormat("cannot map the ring buffer: %s", strerror(errno)));
  }
  absl::Status status = tracer.Start(writer.prototypes());
  if (status.ok()) status = AnnounceAttached(attachment);
  if (!status.ok()) return status;
  const std::string how = absl::StrFormat("as %s\n\n", tracer.choice().why);
  if (absl::GetFlag(FLAGS_json)) {
    WriteErr(how);
  } else {
    WriteOut(how);
  }
  status = PrintCalls(ring.get(), writer);
  if (!status.ok()) return status;

  tracer.Stop();
  while (ring_buffer__consume(ring.get()) == -EINTR) {
  }
  progress.Show("detaching");
  // The text needs what is attached.
  const std::string text =
      absl::GetFlag(FLAGS_json)
          ? writer.TakeJson(tracer.lost())
          : writer.TakeText() +
                absl::StrFormat("\n%s, %s lost as the buffer was full\n",
                                Count(writer.call_cnt(), "call"),
                                WithCommas(tracer.lost()));
  status = attachment.Detach();
  progress.Clear();
  if (!status.ok()) return status;
  return WriteOut(text) ? absl::OkStatus()
                        : absl::CancelledError("the output cannot be written");
}

int Run(Query query) {
  Progress progress;
  const ksweep::Resolution resolution =
      ResolveOrExit(std::move(query), progress);
  if (resolution.targets().size() > kMaxFunctions) {
    PrintMessage(absl::StrFormat(
        "%d functions match, and each call is printed: ask for at most %d",
        resolution.targets().size(), kMaxFunctions));
    return kExitFailed;
  }
  absl::StatusOr<Tracer> tracer = Tracer::Load(resolution);
  if (!tracer.ok()) return FailedToAttach(tracer.status());

  HoldEndSignals();
  absl::StatusOr<ksweep::Attachment> attachment =
      ksweep::Attach(resolution, tracer->prog(), OptionsWithProgress(progress));
  progress.Clear();
  if (!attachment.ok()) return FailedToAttach(attachment.status());
  const absl::Status status = Trace(*tracer, *attachment, progress);
  if (status.ok()) return kExitOk;
  PrintError(status);
  return kExitFailed;
}

// Of --kind those that this program is for.
absl::Status SetKinds(Query* query) {
  const ksweep::KindSet able = {Kind::kFentryMulti, Kind::kFentry};
  if (absl::GetFlag(FLAGS_kind) == std::vector<std::string>{kAutoKind}) {
    query->options.kinds = able;
    return absl::OkStatus();
  }
  for (int i = 0; i < ksweep::kKindCnt; ++i) {
    const Kind kind = static_cast<Kind>(i);
    if (!query->options.kinds.Has(kind) || able.Has(kind)) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "--kind=%s: arguments are passed on by fentry.multi and fentry only",
        ksweep::KindName(kind)));
  }
  return absl::OkStatus();
}

int Main(const std::vector<std::string>& requests) {
  absl::Status status = CheckTimes();
  absl::StatusOr<Query> query =
      status.ok() ? ReadQuery(requests) : absl::StatusOr<Query>(status);
  if (query.ok()) status = SetKinds(&*query);
  if (!query.ok() || !status.ok()) {
    return WrongUsage(query.ok() ? status : query.status());
  }
  ShowLibbpfMessages(absl::GetFlag(FLAGS_verbose));
  return Run(*std::move(query));
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  return examples::Main(
      examples::ParseFlagsOrExit(argc, argv, "fentry_args", examples::kUsage));
}
