#include "lib/attach/programs/prepare.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "ksweep/attach.h"
#include "lib/base/abseil.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

// Every kind has a row.
constexpr KindAbi kKindAbis[] = {
    {Kind::kKprobeMulti, kBpfProgTypeKprobe, kBpfTraceKprobeMulti, 0},
    {Kind::kKretprobeMulti, kBpfProgTypeKprobe, kBpfTraceKprobeMulti,
     kBpfKprobeMultiReturn},
    {Kind::kKprobeSession, kBpfProgTypeKprobe, kBpfTraceKprobeSession, 0},
    {Kind::kFentry, kBpfProgTypeTracing, kBpfTraceFentry, 0},
    {Kind::kFexit, kBpfProgTypeTracing, kBpfTraceFexit, 0},
    {Kind::kFsession, kBpfProgTypeTracing, kBpfTraceFsession, 0},
    {Kind::kFentryMulti, kBpfProgTypeTracing, kBpfTraceFentryMulti, 0},
    {Kind::kFexitMulti, kBpfProgTypeTracing, kBpfTraceFexitMulti, 0},
    {Kind::kFsessionMulti, kBpfProgTypeTracing, kBpfTraceFsessionMulti, 0},
    {Kind::kKprobe, kBpfProgTypeKprobe, 0, 0},
    {Kind::kKretprobe, kBpfProgTypeKprobe, 0, 0},
};
static_assert(std::size(kKindAbis) == kKindCnt);

// What the kernel calls a kind of program, at load.
struct LoadType {
  uint32_t prog_type = 0;
  uint32_t attach_type = 0;

  friend bool operator==(const LoadType&, const LoadType&) = default;
};

LoadType LoadTypeOf(const KindAbi& abi) {
  return {abi.prog_type, abi.attach_type};
}

LoadType LoadTypeOf(const bpf_program& prog) {
  return {bpf_program__type(&prog),
          static_cast<uint32_t>(bpf_program__expected_attach_type(&prog))};
}

// What libbpf made of the section name at open.
LoadType SectionLoadType(const bpf_program& prog) {
  bpf_prog_type type = BPF_PROG_TYPE_UNSPEC;
  bpf_attach_type attach_type = {};
  if (libbpf_prog_type_by_name(bpf_program__section_name(&prog), &type,
                               &attach_type) != 0) {
    return {};
  }
  return {type, static_cast<uint32_t>(attach_type)};
}

// libbpf knows no name for a number that is newer than itself.
std::string NameAndNumber(const char* name, uint32_t number) {
  if (name == nullptr) return absl::StrFormat("%d", number);
  return absl::StrFormat("%s (%d)", name, number);
}

std::string ToString(const LoadType& load_type) {
  const auto prog_type = static_cast<bpf_prog_type>(load_type.prog_type);
  const auto attach_type = static_cast<bpf_attach_type>(load_type.attach_type);
  std::string text = absl::StrFormat(
      "type %s",
      NameAndNumber(libbpf_bpf_prog_type_str(prog_type), load_type.prog_type));
  // 0 is also a cgroup's attach type, but means none for the kinds here.
  if (load_type.attach_type == 0) return text + " without attach type";
  return text +
         absl::StrFormat(" with attach type %s",
                         NameAndNumber(libbpf_bpf_attach_type_str(attach_type),
                                       load_type.attach_type));
}

absl::Status AlreadyLoaded(const bpf_program& prog) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "program '%s' or its object is loaded already; call PrepareProgram() "
      "between bpf_object__open() and bpf_object__load()",
      bpf_program__name(&prog)));
}

absl::Status PreparedForAnother(const bpf_program& prog, const KindAbi& abi) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "program '%s' is prepared for another kind already: it is of %s, %s "
      "needs %s; use a second program",
      bpf_program__name(&prog), ToString(LoadTypeOf(prog)),
      Av(KindName(abi.kind)), ToString(LoadTypeOf(abi))));
}

// Whether programs of that type are loaded without a function.
bool IsTracingMulti(const LoadType& load_type) {
  return std::any_of(
      std::begin(kKindAbis), std::end(kKindAbis), [&](const KindAbi& abi) {
        return LoadTypeOf(abi) == load_type && IsTracingMulti(abi.kind);
      });
}

// Up to 1.1, libbpf keeps the section's handler whatever type is set later, and
// at load the handler looks for a BTF target, which crashes libbpf for
// SEC("fentry/…") or is wrong for SEC("fentry"), or makes the program
// sleepable, which only links by BTF take.
bool IsSectionFor(const bpf_program& prog, const KindAbi& abi) {
  if (IsSleepable(prog) && !NeedsBtf(abi.kind)) return false;
  const LoadType load_type = SectionLoadType(prog);
  if (load_type.prog_type == BPF_PROG_TYPE_UNSPEC) return true;
  if (load_type.prog_type != abi.prog_type) return false;
  return !IsTracingMulti(abi.kind) || IsTracingMulti(load_type);
}

absl::Status CheckSection(const bpf_program& prog, const KindAbi& abi) {
  if (IsSectionFor(prog, abi)) return absl::OkStatus();
  const char* section = bpf_program__section_name(&prog);
  const LoadType load_type = SectionLoadType(prog);
  return absl::FailedPreconditionError(absl::StrFormat(
      "program '%s' is in SEC(\"%s\"), which libbpf loads as %s; use "
      "SEC(\"%s\")",
      bpf_program__name(&prog), section,
      IsSleepable(prog) && !NeedsBtf(abi.kind) ? "sleepable"
                                               : ToString(load_type),
      Av(KindName(abi.kind))));
}

// Without an attach type it is of no kind for sure: most sections have none.
bool IsOfAKind(const LoadType& load_type) {
  if (load_type.attach_type == 0) return false;
  return std::any_of(
      std::begin(kKindAbis), std::end(kKindAbis),
      [&](const KindAbi& abi) { return LoadTypeOf(abi) == load_type; });
}

int SetLoadType(bpf_program* prog, const LoadType& load_type) {
  // A change of type makes libbpf forget the section's handler (libbpf commit
  // d6e6286a12e7 "libbpf: disassociate section handler on explicit
  // bpf_program__set_type() call"), which would otherwise set the attach type
  // of SEC("usdt") again at load. Setting the same type is no change any more,
  // so change it twice.
  int err = bpf_program__set_type(prog, BPF_PROG_TYPE_UNSPEC);
  if (err != 0) return err;
  err = bpf_program__set_type(prog,
                              static_cast<bpf_prog_type>(load_type.prog_type));
  if (err != 0) return err;
  return bpf_program__set_expected_attach_type(
      prog, static_cast<bpf_attach_type>(load_type.attach_type));
}

}  // namespace

bool IsSleepable(const bpf_program& prog) {
  const std::string_view section = bpf_program__section_name(&prog);
  return section.substr(0, section.find('/')).ends_with(".s");
}

const KindAbi& AbiOf(Kind kind) {
  return *std::find_if(std::begin(kKindAbis), std::end(kKindAbis),
                       [kind](const KindAbi& abi) { return abi.kind == kind; });
}

bool IsUnprepared(const bpf_program& prog) {
  const LoadType now = LoadTypeOf(prog);
  if (now.prog_type == BPF_PROG_TYPE_UNSPEC) return true;
  if (now != SectionLoadType(prog)) return false;
  // Auto-attach, which PrepareProgram() turns off, tells whether that was it.
  return bpf_program__autoattach(&prog) || !IsOfAKind(now);
}

absl::Status CheckProgram(const bpf_program& prog, const KindAbi& abi) {
  if (LoadTypeOf(prog) != LoadTypeOf(abi)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "program '%s' is of %s, %s needs %s; call PrepareProgram() between "
        "bpf_object__open() and bpf_object__load()",
        bpf_program__name(&prog), ToString(LoadTypeOf(prog)),
        Av(KindName(abi.kind)), ToString(LoadTypeOf(abi))));
  }
  if (bpf_program__fd(&prog) < 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "program '%s' is not loaded; call bpf_object__load() first",
        bpf_program__name(&prog)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Kind> KindOfProgram(const bpf_program& prog, KindSet kinds) {
  std::string needed;
  for (const KindAbi& abi : kKindAbis) {
    if (!kinds.Has(abi.kind)) continue;
    if (LoadTypeOf(prog) == LoadTypeOf(abi)) return abi.kind;
    absl::StrAppendFormat(&needed, "; %s needs %s", Av(KindName(abi.kind)),
                          ToString(LoadTypeOf(abi)));
  }
  if (needed.empty()) {
    needed = "; the resolution was made for none";
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "program '%s' is of %s, which is for none of the resolution's kinds%s; "
      "call PrepareProgram() between bpf_object__open() and "
      "bpf_object__load()",
      bpf_program__name(&prog), ToString(LoadTypeOf(prog)), needed));
}

namespace {

// Whether libbpf finds a BTF function of that name.
bool SetAttachTarget(bpf_program* prog, std::string_view name) {
  return bpf_program__set_attach_target(prog, 0, std::string(name).c_str()) ==
         0;
}

// By its name, or by the alias that BTF knows it by.
bool SetAttachTarget(bpf_program* prog, const Target& target) {
  if (SetAttachTarget(prog, target.name)) return true;
  return std::any_of(
      target.aliases.begin(), target.aliases.end(),
      [prog](std::string_view alias) { return SetAttachTarget(prog, alias); });
}

}  // namespace

absl::Status PrepareProgram(bpf_program* prog, Kind kind,
                            const Resolution& resolution) {
  absl::Status status = PrepareProgram(prog, kind);
  if (!status.ok() || !NeedsBtf(kind) || IsTracingMulti(kind)) return status;
  for (const Target& target : resolution.targets()) {
    if (!target.kinds.Has(kind)) continue;
    if (SetAttachTarget(prog, target)) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrFormat("libbpf finds no BTF of %s to load program '%s' for",
                        Av(target.name), bpf_program__name(prog)));
  }
  return absl::NotFoundError(absl::StrFormat(
      "no target of the resolution fits %s, so there is none to load program "
      "'%s' for",
      Av(KindName(kind)), bpf_program__name(prog)));
}

absl::Status PrepareProgram(bpf_program* prog, Kind kind) {
  if (prog == nullptr) return absl::InvalidArgumentError("no program given");
  const KindAbi& abi = AbiOf(kind);

  const LoadType wanted = LoadTypeOf(abi);
  if (bpf_program__fd(prog) >= 0) return AlreadyLoaded(*prog);
  absl::Status status = CheckSection(*prog, abi);
  if (!status.ok()) return status;
  if (LoadTypeOf(*prog) != wanted && !IsUnprepared(*prog)) {
    return PreparedForAnother(*prog, abi);
  }
  const int err = SetLoadType(prog, wanted);
  // libbpf's answer for an object that was loaded without this program.
  if (err == -EBUSY) return AlreadyLoaded(*prog);
  if (err != 0) {
    return ErrnoStatus(-err, absl::StrFormat("setting the type of program '%s'",
                                             bpf_program__name(prog)));
  }
  bpf_program__set_autoattach(prog, false);
  // libbpf does so by itself only for sections that it knows.
  if (IsSleepable(*prog)) {
    bpf_program__set_flags(prog, bpf_program__flags(prog) | BPF_F_SLEEPABLE);
  }
  return absl::OkStatus();
}

}  // namespace ksweep
