#include "common/both_ends.h"

#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "ksweep/features.h"
#include "ksweep/kind.h"

ABSL_FLAG(bool, pair, false,
          "a program for the entry and one for the return, even if the kernel "
          "has sessions");

namespace examples {
namespace {

using ksweep::Kind;

struct Way {
  Kind entry;
  std::vector<Kind> kinds;
};

// The best first.
const Way kWays[] = {
    {Kind::kKprobeSession, {Kind::kKprobeSession}},
    {Kind::kKprobeMulti, {Kind::kKprobeMulti, Kind::kKretprobeMulti}},
    {Kind::kKprobe, {Kind::kKprobe, Kind::kKretprobe}},
};

// Where it cannot be found out, as without privilege, attaching will tell why.
bool KernelLacks(Kind kind) {
  return ksweep::Features::Running().Find(kind).support == ksweep::Support::kNo;
}

// The last, which every kernel has, if the kernel lacks all others.
const Way& BestWay(bool pair) {
  for (const Way& way : kWays) {
    if (pair && way.entry == Kind::kKprobeSession) continue;
    if (!KernelLacks(way.entry)) return way;
  }
  return kWays[std::size(kWays) - 1];
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text.append(text.empty() ? "" : ",").append(name);
  }
  return text;
}

absl::StatusOr<std::vector<Kind>> ChooseKinds() {
  const bool pair = absl::GetFlag(FLAGS_pair);
  const std::vector<std::string> names = absl::GetFlag(FLAGS_kind);
  if (names == std::vector<std::string>{kAutoKind}) return BestWay(pair).kinds;
  for (const Way& way : kWays) {
    std::vector<std::string> both;
    for (const Kind kind : way.kinds) both.emplace_back(ksweep::KindName(kind));
    // The entry's kind alone says it as well.
    if (names != both && names != std::vector<std::string>{both[0]}) continue;
    if (pair && way.kinds.size() == 1) break;
    return way.kinds;
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "--kind=%s%s: entry and return are attached by kprobe.session, or as a "
      "pair by kprobe.multi or kprobe",
      Joined(names), pair ? " --pair" : ""));
}

}  // namespace

absl::StatusOr<BothEndsQuery> ReadBothEndsQuery(
    const std::vector<std::string>& requests) {
  absl::StatusOr<Query> query = ReadQuery(requests);
  if (!query.ok()) return query.status();
  ShowLibbpfMessages(absl::GetFlag(FLAGS_verbose));
  absl::StatusOr<std::vector<Kind>> kinds = ChooseKinds();
  if (!kinds.ok()) return kinds.status();
  query->options.kinds = {};
  for (const Kind kind : *kinds) query->options.kinds.Add(kind);
  return BothEndsQuery{*std::move(query), *std::move(kinds)};
}

absl::Status CheckCount(absl::Span<const Kind> kinds, uint64_t count) {
  if (kinds.front() != Kind::kKprobe || count <= kMaxOneByOne) {
    return absl::OkStatus();
  }
  const ksweep::Feature multi =
      ksweep::Features::Running().Find(Kind::kKprobeMulti);
  return absl::InvalidArgumentError(absl::StrFormat(
      "%d functions match, and one by one (kprobe and kretprobe) at most %d "
      "are attached; ask for fewer%s%s",
      count, kMaxOneByOne,
      multi.support == ksweep::Support::kYes ? ", or use --kind=kprobe.multi"
                                             : "; without kprobe.multi: ",
      multi.support == ksweep::Support::kYes ? "" : multi.why));
}

absl::StatusOr<std::vector<ksweep::KindProgram>> PrepareBothEnds(
    const BothEndsParts& parts, absl::Span<const Kind> kinds) {
  std::vector<ksweep::KindProgram> prepared;
  const bool session = kinds.size() == 1;
  bpf_program__set_autoload(parts.both_ends, session);
  bpf_program__set_autoload(parts.at_entry, !session);
  bpf_program__set_autoload(parts.at_return, !session);
  if (!session) bpf_map__set_max_entries(parts.frames_of, kMaxThreads);
  for (const Kind kind : kinds) {
    bpf_program* prog = session            ? parts.both_ends
                        : prepared.empty() ? parts.at_entry
                                           : parts.at_return;
    absl::Status status = ksweep::PrepareProgram(prog, kind);
    if (!status.ok()) return status;
    prepared.push_back({kind, prog});
  }
  return prepared;
}

}  // namespace examples
