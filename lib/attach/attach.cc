#include "ksweep/attach.h"

#include <bpf/libbpf.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "ksweep/features.h"
#include "lib/attach/attacher.h"
#include "lib/attach/explain.h"
#include "lib/attach/linking/arrange.h"
#include "lib/attach/programs/prepare.h"
#include "lib/attach/programs/prepare_several.h"
#include "lib/base/abseil.h"
#include "lib/base/clock.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

std::string ToString(KindSet kinds) {
  std::string text;
  for (int i = 0; i < kKindCnt; ++i) {
    const Kind kind = static_cast<Kind>(i);
    if (!kinds.Has(kind)) continue;
    if (!text.empty()) text += ", ";
    text += KindName(kind);
  }
  return text.empty() ? "no kind" : text;
}

// What is kept for later, when what the callbacks refer to may be gone.
AttachOptions WithoutCallbacks(AttachOptions options) {
  options.progress = nullptr;
  return options;
}

}  // namespace

Attacher::Attacher(BpfSys& sys, const Resolution& resolution,
                   const AttachOptions& options, PerfSys& perf,
                   KernelFiles files)
    : bpf_(sys, meter_),
      perf_(perf, meter_),
      files_(std::move(files)),
      options_(options),
      state_(std::make_unique<AttachmentState>()) {
  state_->sys = &sys;
  state_->perf = &perf;
  state_->files = files_;
  state_->resolution = resolution;
  state_->options = WithoutCallbacks(options);
}

absl::StatusOr<Attachment> Attacher::Attach(int prog_fd) && {
  ProgramFd program;
  program.fd = prog_fd;
  if (options_.kind.has_value()) {
    program.kind = *options_.kind;
  } else {
    const absl::StatusOr<Kind> kind = OnlyKind();
    if (!kind.ok()) return kind.status();
    program.kind = *kind;
  }
  return std::move(*this).Attach({&program, 1});
}

absl::StatusOr<Attachment> Attacher::Attach(
    absl::Span<const ProgramFd> asked) && {
  const int64_t start_ns = NowNs();
  const std::vector<ProgramFd> programs = TakePresent(asked);
  if (programs.empty() && !asked.empty()) {
    return NoneLeft(state_->report.absent);
  }
  absl::Status status = CheckArguments(programs);
  if (status.ok()) status = AddPrograms(programs);
  if (!status.ok()) return status;
  MakeFactories();
  std::vector<LinkGroup> groups = SelectTargets();
  if (groups.empty()) return NoTargets();
  status = Reserve(groups);
  if (!status.ok()) return status;
  state_->report.select_ns = NowNs() - start_ns;

  SetReady(options_, false);
  status = LinkAll(std::move(groups));
  if (!status.ok()) {
    DropLinks(*state_).IgnoreError();
    return status;
  }
  FillReport(NowNs() - start_ns);
  SetReady(options_, true);
  return Attachment(std::move(state_));
}

std::vector<ProgramFd> Attacher::TakePresent(
    absl::Span<const ProgramFd> programs) {
  std::vector<ProgramFd> present;
  for (const ProgramFd& program : programs) {
    if (program.absent.empty()) {
      present.push_back(program);
    } else {
      state_->report.absent.push_back(
          {program.kind, program.absent, CountFitting(program.kind)});
    }
  }
  return present;
}

uint64_t Attacher::CountFitting(Kind kind) const {
  const std::vector<Target>& targets = state_->resolution.targets();
  return static_cast<uint64_t>(std::count_if(
      targets.begin(), targets.end(),
      [kind](const Target& target) { return target.kinds.Has(kind); }));
}

// The kind that AttachFd() takes for kAuto.
absl::StatusOr<Kind> Attacher::OnlyKind() const {
  const KindSet kinds = state_->resolution.kinds();
  std::optional<Kind> only;
  for (int i = 0; i < kKindCnt; ++i) {
    const Kind kind = static_cast<Kind>(i);
    if (kinds.Has(kind)) only = kind;
  }
  if (only.has_value() && kinds == KindSet{*only}) return *only;
  return absl::InvalidArgumentError(absl::StrFormat(
      "the resolution was made for %s; say in AttachOptions::kind what the "
      "program was loaded for",
      ToString(kinds)));
}

absl::Status Attacher::CheckArguments(
    absl::Span<const ProgramFd> programs) const {
  if (options_.max_per_link == 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "AttachOptions::max_per_link is 0; it is 1 to %d", kMaxPerLink));
  }
  if (programs.empty()) return absl::InvalidArgumentError("no program given");
  std::vector<Kind> kinds;
  for (const ProgramFd& program : programs) {
    const Kind kind = program.kind;
    kinds.push_back(kind);
    if (program.fd < 0) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "the program is not loaded: its descriptor is %d", program.fd));
    }
    if (!state_->resolution.kinds().Has(kind)) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "the resolution was made for %s, not for %s; add it to "
          "ResolveOptions::kinds",
          ToString(state_->resolution.kinds()), Av(KindName(kind))));
    }
  }
  return CheckKinds(kinds);
}

absl::Status Attacher::AddPrograms(absl::Span<const ProgramFd> programs) {
  for (const ProgramFd& program : programs) {
    AttachedProgram added;
    added.kind = program.kind;
    added.fd = program.fd;
    added.image = program.image;
    if (options_.updatable) {
      if (program.image != nullptr) {
        const absl::Status status = OwnMaps(*program.image);
        if (!status.ok()) return status;
      }
      added.own = UniqueFd(fcntl(program.fd, F_DUPFD_CLOEXEC, 0));
      if (added.own.get() < 0) {
        const int err = errno;
        return ErrnoStatus(err, "keeping the program for later updates");
      }
      added.fd = added.own.get();
    }
    state_->programs.push_back(std::move(added));
  }
  return absl::OkStatus();
}

void Attacher::MakeFactories() {
  for (const AttachedProgram& program : state_->programs) {
    factories_.push_back(
        MakeLinkFactory({bpf_, perf_, files_}, program, options_));
  }
}

std::vector<LinkGroup> Attacher::SelectTargets() {
  std::vector<uint32_t> all(state_->resolution.targets().size());
  std::iota(all.begin(), all.end(), 0);
  return Arrange(*state_, all);
}

absl::Status Attacher::NoTargets() const {
  std::string kinds;
  for (const AttachedProgram& program : state_->programs) {
    if (!kinds.empty()) kinds += " or ";
    kinds += KindName(program.kind);
  }
  const Resolution& resolution = state_->resolution;
  return absl::InvalidArgumentError(absl::StrFormat(
      "nothing to attach to: of %d targets none fits %s (see "
      "Target::misfits); %d functions were left out (see "
      "Resolution::omissions()), %d requests found none (see unmatched())",
      resolution.targets().size(), kinds, resolution.omissions().size(),
      resolution.unmatched().size()));
}

absl::Status Attacher::Reserve(absl::Span<const LinkGroup> groups) {
  std::vector<size_t> cnt(factories_.size());
  for (const LinkGroup& group : groups) {
    cnt[group.program] += group.slots.size();
  }
  // Of those with a link for each function: they share what a process may have.
  size_t single_cnt = 0;
  for (size_t i = 0; i < factories_.size(); ++i) {
    size_t reserved = cnt[i];
    if (factories_[i]->max_per_link() == 1) {
      reserved = single_cnt += cnt[i];
      const absl::Status status =
          CheckSingle(single_cnt, state_->programs[i].kind);
      if (!status.ok()) return status;
    }
    const absl::Status status = factories_[i]->Reserve(reserved);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Attacher::CheckSingle(size_t cnt, Kind kind) const {
  if (cnt <= options_.max_single) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s needs a link for each of %d functions, and "
      "AttachOptions::max_single is %d: each takes tens of milliseconds to "
      "attach and to detach again; ask for fewer functions, use a kind with "
      "one link for all, or raise the limit",
      Av(KindName(kind)), cnt, options_.max_single));
}

absl::Status Attacher::LinkAll(std::vector<LinkGroup> groups) {
  AttachProgress progress;
  for (const LinkGroup& group : groups) progress.total += group.slots.size();
  Refusals refusals(options_, progress.total);
  for (LinkGroup& group : groups) {
    LeaveOutRefused(group);
    if (group.slots.empty()) continue;
    const absl::Status status = GroupLinker(*state_, *factories_[group.program],
                                            refusals, options_, progress)
                                    .Run(group);
    if (!status.ok()) return status;
  }
  const absl::Status status = refusals.Check();
  state_->refused = std::move(refusals).Take();
  return status;
}

void Attacher::LeaveOutRefused(LinkGroup& group) const {
  std::erase_if(group.slots,
                [this](uint32_t slot) { return state_->slots[slot].refused; });
}

void Attacher::FillReport(int64_t total_ns) {
  AttachReport& report = state_->report;
  report.resolve_ns = state_->resolution.stats().total_ns;
  report.syscalls = meter_.calls();
  report.attach_ns = meter_.ns();
  report.total_ns = total_ns;
  CountAttached(*state_);
}

namespace {

// Of a program that is loaded for its kind.
absl::StatusOr<ProgramFd> MakeProgramFd(const KindProgram& program) {
  if (program.prog == nullptr) {
    return absl::InvalidArgumentError("no program given");
  }
  ProgramFd made;
  made.kind = program.kind;
  made.absent = program.absent;
  if (!made.absent.empty()) return made;
  const absl::Status status = CheckProgram(*program.prog, AbiOf(program.kind));
  if (!status.ok()) return status;
  made.fd = bpf_program__fd(program.prog);
  if (!NeedsBtf(program.kind)) return made;
  absl::StatusOr<ProgramImage> image =
      ReadProgramImage(BpfSys::Kernel(), *program.prog);
  if (!image.ok()) return image.status();
  made.image = std::make_shared<ProgramImage>(*std::move(image));
  return made;
}

}  // namespace

absl::StatusOr<Attachment> Attach(const Resolution& resolution,
                                  const bpf_program* prog,
                                  const AttachOptions& options) {
  if (prog == nullptr) return absl::InvalidArgumentError("no program given");
  KindProgram program;
  program.prog = prog;
  if (options.kind.has_value()) {
    program.kind = *options.kind;
  } else {
    const absl::StatusOr<Kind> kind = KindOfProgram(*prog, resolution.kinds());
    if (!kind.ok()) return kind.status();
    program.kind = *kind;
  }
  return Attach(resolution, absl::MakeConstSpan(&program, 1), options);
}

absl::StatusOr<Attachment> Attach(const Resolution& resolution,
                                  absl::Span<const KindProgram> programs,
                                  const AttachOptions& options) {
  std::vector<ProgramFd> fds;
  for (const KindProgram& program : programs) {
    absl::StatusOr<ProgramFd> made = MakeProgramFd(program);
    if (!made.ok()) return made.status();
    fds.push_back(*std::move(made));
  }
  absl::StatusOr<Attachment> attachment =
      Attacher(BpfSys::Kernel(), resolution, options).Attach(fds);
  if (attachment.ok()) return attachment;
  absl::Status status = attachment.status();
  for (const ProgramFd& program : fds) {
    if (!program.absent.empty()) continue;
    status = ExplainFailure(status, program.kind, Features::Running());
  }
  return status;
}

absl::StatusOr<Attachment> AttachFd(const Resolution& resolution, int prog_fd,
                                    const AttachOptions& options) {
  return Attacher(BpfSys::Kernel(), resolution, options).Attach(prog_fd);
}

}  // namespace ksweep
