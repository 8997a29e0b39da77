#include "ksweep/resolve.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/clock.h"
#include "lib/base/errno_status.h"
#include "lib/base/glob.h"
#include "lib/resolve/assemble.h"
#include "lib/resolve/btf_join.h"
#include "lib/resolve/btf_plan.h"
#include "lib/resolve/candidates.h"
#include "lib/resolve/deny.h"
#include "lib/resolve/index_text.h"
#include "lib/resolve/join.h"
#include "lib/resolve/judge.h"
#include "lib/resolve/resolution_builder.h"
#include "lib/resolve/second_pass.h"
#include "lib/resolve/sweep.h"
#include "lib/resolve/sweep_plan.h"
#include "lib/source/blacklist.h"
#include "lib/source/btf_store.h"
#include "lib/source/list_file.h"
#include "lib/source/restrictions.h"

namespace ksweep {
namespace {

// One Resolve() under way.
class Resolver {
 public:
  Resolver(std::vector<Request> requests, const KernelFiles& files,
           const ResolveOptions& options)
      : files_(files),
        options_(options),
        builder_(std::move(requests), options.kinds),
        btf_store_(files) {}

  absl::StatusOr<Resolution> Run();

 private:
  absl::Status CheckArguments() const;
  absl::Status CheckRequest(const Request& request) const;
  absl::StatusOr<ListFile> OpenSymbols();
  absl::Status SweepKallsyms();
  absl::Status JoinLists();
  absl::Status CheckUntested() const;
  absl::Status ReadBlacklist();
  void PlanBtfRequests();
  absl::Status MatchBtf();
  void AssembleAll();
  absl::Status CheckTargetCnt(const Resolution& resolution) const;
  void SetCookies();
  void FillStats(int64_t start);

  bool AnyKind(bool needs_filter_list) const {
    for (int i = 0; i < kKindCnt; ++i) {
      const Kind kind = static_cast<Kind>(i);
      if (options_.kinds.Has(kind) &&
          NeedsFilterList(kind) == needs_filter_list) {
        return true;
      }
    }
    return false;
  }
  bool AnyBtfKind() const {
    for (int i = 0; i < kKindCnt; ++i) {
      const Kind kind = static_cast<Kind>(i);
      if (options_.kinds.Has(kind) && NeedsBtf(kind)) return true;
    }
    return false;
  }
  bool AnyBtfRequest() const {
    return std::any_of(builder_.requests().begin(), builder_.requests().end(),
                       IsBtfForm);
  }
  ResolveStats& stats() { return builder_.stats(); }

  const KernelFiles& files_;
  const ResolveOptions& options_;
  ResolutionBuilder builder_;
  BtfStore btf_store_;
  BtfPlan btf_plan_;
  BtfMatches btf_matches_;
  std::optional<SweepPlan> plan_;
  std::optional<ListFile> kallsyms_;
  SweepResult sweep_;
  Candidates candidates_;
  JoinOutcome join_;
  std::optional<Blacklist> blacklist_;
  int64_t lists_read_ns_ = 0;
  int64_t match_ns_ = 0;
  int64_t join_ns_ = 0;
  int64_t btf_ns_ = 0;
};

absl::Status Resolver::CheckRequest(const Request& request) const {
  const auto refuse = [&request](std::string_view why) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "request '%s' cannot be used: %s", request.ToString(), Av(why)));
  };
  if (request.deny() && (request.form() == Request::Form::kBtfId ||
                         request.form() == Request::Form::kTakes)) {
    return refuse("BTF forms cannot be denied, only selected");
  }
  if (request.owner().is_module()) {
    absl::Status status = CheckGlob(request.owner().module_pattern());
    if (!status.ok()) return status;
  }
  switch (request.form()) {
    case Request::Form::kExact:
    case Request::Form::kSyscall:
    case Request::Form::kTakes:
      if (request.name().empty()) return refuse("the name is empty");
      if (request.name().find_first_of("\n\t") != std::string::npos) {
        return refuse("no name has a tab or a line end");
      }
      return absl::OkStatus();
    case Request::Form::kPredicate:
      return request.predicate() == nullptr ? refuse("there is no predicate")
                                            : absl::OkStatus();
    case Request::Form::kAddress:
      return request.addr() == 0 ? refuse("no function is at address 0")
                                 : absl::OkStatus();
    case Request::Form::kGlob:
    case Request::Form::kBtfId:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status Resolver::CheckArguments() const {
  if (options_.kinds.empty()) {
    return absl::InvalidArgumentError(
        "no kind is asked for; set ResolveOptions::kinds");
  }
  const std::vector<Request>& requests = builder_.requests();
  for (const Request& request : requests) {
    absl::Status status = CheckRequest(request);
    if (!status.ok()) return status;
  }
  const bool any = std::any_of(requests.begin(), requests.end(),
                               [](const Request& r) { return !r.deny(); });
  if (!any) {
    return absl::InvalidArgumentError(
        "nothing is asked for: there is no request that is not a deny");
  }
  for (const DefaultDeny& entry : options_.default_deny_list) {
    absl::Status status = CheckGlob(entry.pattern);
    if (!status.ok()) return Annotate(status, "default deny list");
  }
  return absl::OkStatus();
}

absl::StatusOr<ListFile> Resolver::OpenSymbols() {
  if (options_.index != nullptr && options_.index->Stats().generation != 0) {
    absl::StatusOr<std::string> text = TextOfIndex(*options_.index);
    if (!text.ok()) return text.status();
    return ListFile::OfText(*std::move(text), "symbol index");
  }
  if (options_.index != nullptr) {
    stats().notes.push_back(
        "the symbol index knows no modules, so kallsyms was read");
  }
  return ListFile::Open(files_, KernelFile::kKallsyms);
}

absl::Status Resolver::SweepKallsyms() {
  absl::StatusOr<ListFile> kallsyms = OpenSymbols();
  if (!kallsyms.ok() && absl::IsDataLoss(kallsyms.status())) {
    return kallsyms.status();
  }
  if (!kallsyms.ok()) {
    absl::Status shortage = ShortageOf(kallsyms.status());
    if (!shortage.ok()) return shortage;
    return Annotate(kallsyms.status(),
                    "no symbols without kallsyms; mount proc or name another "
                    "root");
  }
  kallsyms_ = *std::move(kallsyms);
  SweepOptions sweep_options;
  sweep_options.stop_early =
      options_.stop_early && !options_.clones && !AnyBtfKind();
  absl::Status status = Sweep(*plan_, sweep_options, &*kallsyms_, &sweep_);
  if (!status.ok()) return status;
  if (sweep_.malformed == sweep_.lines) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s has no symbol in %d lines; is it kallsyms text?",
                        files_.Path(KernelFile::kKallsyms), sweep_.lines));
  }
  const bool all_there = sweep_options.stop_early && plan_->only_exact();
  if (!sweep_.disordered || all_there || sweep_.rows.empty()) {
    return absl::OkStatus();
  }
  stats().notes.push_back(
      "kallsyms is in no order, so it was read again for aliases");
  return CompleteAliases(&*kallsyms_, &sweep_);
}

absl::Status Resolver::JoinLists() {
  if (AnyKind(/*needs_filter_list=*/true)) {
    absl::Status status = JoinFilterList({files_, *plan_, &*kallsyms_}, &sweep_,
                                         &candidates_, &join_);
    if (!status.ok()) return status;
    status = CheckUntested();
    if (!status.ok()) return status;
    stats().filter_list = join_.list;
  }
  if (AnyKind(/*needs_filter_list=*/false)) return ReadBlacklist();
  return absl::OkStatus();
}

// Without a list nothing is known to be traceable. What is asked for by name
// can be tried; a glob would surely take something that is not.
absl::Status Resolver::CheckUntested() const {
  if (join_.list != ListState::kMissing ||
      options_.untested == Untested::kTry ||
      AnyKind(/*needs_filter_list=*/false)) {
    return absl::OkStatus();
  }
  for (const Request& request : builder_.requests()) {
    if (request.is_exact() || request.deny()) continue;
    return Annotate(
        join_.missing,
        absl::StrFormat("'%s' needs the kernel's filter list; %s, or allow "
                        "untested functions",
                        request.ToString(), ExplainMissingList(files_)));
  }
  return absl::OkStatus();
}

absl::Status Resolver::ReadBlacklist() {
  absl::StatusOr<ListFile> file =
      ListFile::Open(files_, KernelFile::kBlacklist);
  if (!file.ok()) {
    absl::Status shortage = ShortageOf(file.status());
    if (!shortage.ok()) return shortage;
    stats().blacklist = ListState::kMissing;
    stats().notes.push_back(
        absl::StrFormat("the kprobe blacklist is not known, nothing is left "
                        "out for it (%s)",
                        file.status().message()));
    return absl::OkStatus();
  }
  absl::StatusOr<Blacklist> blacklist = Blacklist::Read(&*file);
  if (!blacklist.ok()) return blacklist.status();
  blacklist_ = *std::move(blacklist);
  stats().blacklist = ListState::kAddresses;
  if (blacklist_->empty()) {
    stats().notes.push_back(
        "the kprobe blacklist shows no addresses, nothing is left out for it");
  }
  stats().files.push_back(file->stats());
  lists_read_ns_ += file->read_ns();
  return absl::OkStatus();
}

void Resolver::PlanBtfRequests() {
  if (!AnyBtfRequest()) return;
  const int64_t start = NowNs();
  btf_plan_ = PlanBtf(builder_.requests(), &btf_store_, &builder_.text());
  btf_ns_ += NowNs() - start - btf_store_.read_ns();
}

absl::Status Resolver::MatchBtf() {
  if (!AnyBtfKind() && !AnyBtfRequest()) return absl::OkStatus();
  const int64_t start = NowNs();
  const int64_t read = btf_store_.read_ns() + kallsyms_->read_ns();
  absl::Status status =
      JoinBtf({builder_.requests(), options_.kinds, options_.limits,
               &btf_store_, &*kallsyms_, &builder_.text()},
              sweep_, &candidates_, &btf_matches_);
  btf_ns_ +=
      NowNs() - start - (btf_store_.read_ns() + kallsyms_->read_ns() - read);
  return status.ok() ? btf_store_.shortage() : status;
}

void Resolver::AssembleAll() {
  const DenySet denies(builder_.requests(),
                       options_.default_deny ? options_.default_deny_list
                                             : absl::Span<const DefaultDeny>());
  const Judge judge(
      {.sweep = sweep_,
       .denies = denies,
       .requests = builder_.requests(),
       .blacklist = blacklist_.has_value() ? &*blacklist_ : nullptr,
       .filter_list = join_.list,
       .by_name = join_.by_name,
       .try_untested = options_.untested == Untested::kTry,
       .cookie_conflicts = options_.cookie_conflicts,
       .btf = btf_matches_,
       .limits = options_.limits,
       .text = &builder_.text()});
  Assemble(*plan_, btf_plan_, sweep_, candidates_, judge, options_.kinds,
           &builder_);
}

void Resolver::SetCookies() {
  const std::vector<Request>& requests = builder_.requests();
  const bool given =
      std::any_of(requests.begin(), requests.end(),
                  [](const Request& r) { return r.cookie().has_value(); });
  if (given) return;
  uint64_t slot = 0;
  for (Target& target : builder_.targets()) target.cookie = slot++;
}

absl::Status Resolver::CheckTargetCnt(const Resolution& resolution) const {
  if (options_.max_targets == 0 ||
      resolution.targets().size() <= options_.max_targets) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%d functions match, more than the %d allowed; narrow the patterns or "
      "raise max_targets",
      resolution.targets().size(), options_.max_targets));
}

void Resolver::FillStats(int64_t start) {
  ResolveStats& s = stats();
  s.addresses = sweep_.addresses();
  s.lines = sweep_.lines;
  s.malformed = sweep_.malformed;
  s.malformed_lines = sweep_.malformed_lines;
  s.files.insert(s.files.end(), btf_store_.stats().begin(),
                 btf_store_.stats().end());
  s.files.insert(s.files.begin(), join_.files.begin(), join_.files.end());
  s.files.insert(s.files.begin(), kallsyms_->stats());
  for (const Unjoined& unjoined : join_.unjoined) {
    s.unjoined.push_back({unjoined.location,
                          builder_.text().Copy(unjoined.name),
                          builder_.text().Copy(unjoined.module)});
  }
  for (const auto* notes :
       {&join_.notes, &btf_plan_.notes, &btf_matches_.notes}) {
    s.notes.insert(s.notes.end(), notes->begin(), notes->end());
  }
  if (s.addresses != AddressState::kFull) {
    s.notes.push_back(ExplainHiddenAddresses(files_));
  }
  s.read_ns = kallsyms_->read_ns() + join_.read_ns + lists_read_ns_ +
              btf_store_.read_ns();
  s.match_ns = match_ns_;
  s.join_ns = join_ns_;
  s.btf_ns = btf_ns_;
  s.total_ns = NowNs() - start;
}

absl::StatusOr<Resolution> Resolver::Run() {
  const int64_t start = NowNs();
  absl::Status status = CheckArguments();
  if (!status.ok()) return status;
  PlanBtfRequests();
  const int64_t planned = NowNs();
  plan_.emplace(builder_.requests(), &btf_plan_);
  status = SweepKallsyms();
  if (!status.ok()) return status;
  candidates_ = MakeCandidates(*plan_, options_.clones, &sweep_);
  const int64_t swept = NowNs();
  match_ns_ = swept - planned - kallsyms_->read_ns();
  const int64_t kallsyms_read = kallsyms_->read_ns();

  status = JoinLists();
  if (!status.ok()) return status;
  join_ns_ = NowNs() - swept - join_.read_ns - lists_read_ns_ -
             (kallsyms_->read_ns() - kallsyms_read);
  status = MatchBtf();
  if (!status.ok()) return status;
  const int64_t joined = NowNs();
  AssembleAll();
  SetCookies();
  builder_.set_by_name(join_.by_name);
  join_ns_ += NowNs() - joined;
  FillStats(start);

  Resolution resolution = std::move(builder_).Build();
  status = CheckTargetCnt(resolution);
  if (status.ok() && options_.missing == OnMissing::kFail) {
    status = resolution.CheckMissing();
  }
  if (!status.ok()) return status;
  return resolution;
}

}  // namespace

absl::StatusOr<Resolution> Resolve(std::vector<Request> requests,
                                   const KernelFiles& files,
                                   const ResolveOptions& options) {
  return Resolver(std::move(requests), files, options).Run();
}

}  // namespace ksweep
