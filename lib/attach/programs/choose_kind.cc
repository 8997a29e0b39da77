#include "lib/attach/programs/choose_kind.h"

#include <bpf/libbpf.h>

#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/attach/programs/prepare.h"
#include "lib/base/abseil.h"
#include "lib/base/bpf_sys.h"

namespace ksweep {
namespace {

enum class Moment : uint8_t { kEntry, kReturn, kBoth };

struct SectionKinds {
  std::string_view section;
  Moment moment;
  std::vector<Kind> kinds;  // the best first
};

const std::vector<SectionKinds>& SectionTable() {
  static const auto* table = new std::vector<SectionKinds>{
      {"kretprobe", Moment::kReturn, {Kind::kKretprobeMulti, Kind::kKretprobe}},
      {"kretprobe.multi",
       Moment::kReturn,
       {Kind::kKretprobeMulti, Kind::kKretprobe}},
      {"kretsyscall",
       Moment::kReturn,
       {Kind::kKretprobeMulti, Kind::kKretprobe}},
      {"kprobe.session", Moment::kBoth, {Kind::kKprobeSession}},
      {"fentry.multi", Moment::kEntry, {Kind::kFentryMulti, Kind::kFentry}},
      {"fexit.multi", Moment::kReturn, {Kind::kFexitMulti, Kind::kFexit}},
      {"fsession.multi",
       Moment::kBoth,
       {Kind::kFsessionMulti, Kind::kFsession}},
      {"fentry", Moment::kEntry, {Kind::kFentry}},
      {"fexit", Moment::kReturn, {Kind::kFexit}},
      {"fsession", Moment::kBoth, {Kind::kFsession}},
      // Last: also for every section that is not in the table.
      {"kprobe", Moment::kEntry, {Kind::kKprobeMulti, Kind::kKprobe}},
  };
  return *table;
}

struct FixedKind {
  uint32_t prog_type;
  uint32_t attach_type;
  Moment moment;
  Kind kind;
};

constexpr FixedKind kFixedKinds[] = {
    {kBpfProgTypeKprobe, kBpfTraceKprobeMulti, Moment::kEntry,
     Kind::kKprobeMulti},
    {kBpfProgTypeKprobe, kBpfTraceKprobeMulti, Moment::kReturn,
     Kind::kKretprobeMulti},
    {kBpfProgTypeKprobe, kBpfTraceKprobeSession, Moment::kBoth,
     Kind::kKprobeSession},
    {kBpfProgTypeKprobe, 0, Moment::kEntry, Kind::kKprobe},
    {kBpfProgTypeKprobe, 0, Moment::kReturn, Kind::kKretprobe},
    {kBpfProgTypeTracing, kBpfTraceFentry, Moment::kEntry, Kind::kFentry},
    {kBpfProgTypeTracing, kBpfTraceFexit, Moment::kReturn, Kind::kFexit},
    {kBpfProgTypeTracing, kBpfTraceFsession, Moment::kBoth, Kind::kFsession},
    {kBpfProgTypeTracing, kBpfTraceFentryMulti, Moment::kEntry,
     Kind::kFentryMulti},
    {kBpfProgTypeTracing, kBpfTraceFexitMulti, Moment::kReturn,
     Kind::kFexitMulti},
    {kBpfProgTypeTracing, kBpfTraceFsessionMulti, Moment::kBoth,
     Kind::kFsessionMulti},
};

// "kprobe.multi" of "?kprobe.multi/vfs_*".
std::string_view SectionType(std::string_view section) {
  if (section.starts_with('?')) section.remove_prefix(1);
  return section.substr(0, section.find('/'));
}

const SectionKinds& FindSection(std::string_view section) {
  const std::string_view type = SectionType(section);
  for (const SectionKinds& row : SectionTable()) {
    if (row.section == type) return row;
  }
  return SectionTable().back();
}

// Where the types leave a choice of the moment, the section has it.
std::vector<Kind> KindOfTypes(const ProgramShape& shape) {
  const Moment moment = FindSection(shape.section).moment;
  std::vector<Kind> found;
  for (const FixedKind& row : kFixedKinds) {
    if (row.prog_type != shape.prog_type ||
        row.attach_type != shape.attach_type) {
      continue;
    }
    if (found.empty() || row.moment == moment) found = {row.kind};
  }
  return found;
}

// What is against `kind` on the side of the resolution; empty: nothing.
std::string Against(Kind kind, const KindFit* fit) {
  if (fit == nullptr) return "";
  if (!fit->asked.Has(kind)) return "not among ResolveOptions::kinds";
  if (fit->FittingFor(kind) == 0) return "no target fits";
  return "";
}

// "; not kprobe.multi (no target fits)".
std::string Not(Kind kind, std::string_view reason) {
  return absl::StrFormat("; not %s (%s)", Av(KindName(kind)), Av(reason));
}

std::string Chosen(Kind kind, const KindFit* fit) {
  std::string text(KindName(kind));
  if (fit == nullptr) return text;
  return text + absl::StrFormat(", which %d of %d target%s fit",
                                fit->FittingFor(kind), fit->target_cnt,
                                fit->target_cnt == 1 ? "" : "s");
}

std::string DescribeProgram(const ProgramShape& shape) {
  if (!shape.fixed) {
    return absl::StrFormat("program '%s' in SEC(\"%s\")", shape.name,
                           shape.section);
  }
  return absl::StrFormat(
      "program '%s', prepared or loaded with type %d and attach type %d,",
      shape.name, shape.prog_type, shape.attach_type);
}

}  // namespace

ProgramShape ShapeOf(const bpf_program& prog) {
  ProgramShape shape;
  shape.name = bpf_program__name(&prog);
  shape.section = bpf_program__section_name(&prog);
  shape.prog_type = bpf_program__type(&prog);
  shape.attach_type =
      static_cast<uint32_t>(bpf_program__expected_attach_type(&prog));
  shape.fixed = bpf_program__fd(&prog) >= 0 || !IsUnprepared(prog);
  return shape;
}

KindFit FitOf(const Resolution& resolution) {
  KindFit fit;
  fit.asked = resolution.kinds();
  fit.target_cnt = resolution.targets().size();
  for (const Target& target : resolution.targets()) {
    for (size_t i = 0; i < fit.fitting.size(); ++i) {
      fit.fitting[i] += target.kinds.Has(static_cast<Kind>(i));
    }
  }
  return fit;
}

std::vector<Kind> KindsFor(const ProgramShape& shape) {
  if (shape.fixed) return KindOfTypes(shape);
  return FindSection(shape.section).kinds;
}

absl::StatusOr<KindChoice> ChooseKind(const ProgramShape& shape,
                                      const KindFit* fit, Features& features) {
  std::vector<Kind> left;
  std::string against;
  for (Kind kind : KindsFor(shape)) {
    const std::string misfit = Against(kind, fit);
    if (misfit.empty()) {
      left.push_back(kind);
    } else {
      against += Not(kind, misfit);
    }
  }
  for (Kind kind : left) {
    if (kind != left.back()) {
      const Feature feature = features.Find(kind);
      if (feature.support == Support::kNo) {
        against += Not(kind, feature.why);
        continue;
      }
    }
    return KindChoice{kind, Chosen(kind, fit) + against};
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("no kind to attach %s as%s", DescribeProgram(shape),
                      against.empty() ? "; its types are of none" : against));
}

}  // namespace ksweep
