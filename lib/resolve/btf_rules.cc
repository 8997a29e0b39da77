#include "lib/resolve/btf_rules.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"

namespace ksweep {
namespace {

constexpr std::string_view kRunsInTrampoline =
    "trampolines call it themselves, so the kernel denies it";
constexpr std::string_view kNeverReturns =
    "does not return, so nothing could run at its return";

// Linux kernel/bpf/verifier.c, btf_id_deny and noreturn_deny. What depends on
// the kernel's configuration or version is left out always: before v6.15 the
// second list was missing, and a program on one of them never ended.
constexpr std::array<TraceDeny, 20> kDenyList = {{
    {"___migrate_enable", kRunsInTrampoline},
    {"__ia32_sys_exit", kNeverReturns, true},
    {"__ia32_sys_exit_group", kNeverReturns, true},
    {"__kunit_abort", kNeverReturns, true},
    {"__module_put_and_kthread_exit", kNeverReturns, true},
    {"__rcu_read_lock", kRunsInTrampoline},
    {"__rcu_read_unlock", kRunsInTrampoline},
    {"__x64_sys_exit", kNeverReturns, true},
    {"__x64_sys_exit_group", kNeverReturns, true},
    {"do_exit", kNeverReturns, true},
    {"do_group_exit", kNeverReturns, true},
    {"kthread_complete_and_exit", kNeverReturns, true},
    {"kthread_exit", kNeverReturns, true},
    {"kunit_try_catch_throw", kNeverReturns, true},
    {"make_task_dead", kNeverReturns, true},
    {"migrate_disable", kRunsInTrampoline},
    {"migrate_enable", kRunsInTrampoline},
    {"preempt_count_add", kRunsInTrampoline},
    {"preempt_count_sub", kRunsInTrampoline},
    {"rcu_read_unlock_strict", kRunsInTrampoline},
}};

bool RunsAtReturn(Kind kind) {
  return kind == Kind::kFexit || kind == Kind::kFsession ||
         kind == Kind::kFexitMulti || kind == Kind::kFsessionMulti;
}

bool IsMulti(Kind kind) { return kind >= Kind::kFentryMulti; }

// Bytes of an argument in two registers (Linux kernel/bpf/btf.c,
// btf_distill_func_proto()).
constexpr uint32_t kMaxArgBytes = 16;
constexpr uint32_t kMaxReturnBytes = 8;

bool ReturnsAggregate(const BtfPrototype& proto) {
  return proto.ret.kind == BtfValue::Kind::kStruct ||
         proto.ret.kind == BtfValue::Kind::kUnion;
}

struct PrototypeRule {
  bool (*breaks)(const BtfPrototype& proto, Kind kind,
                 const TraceLimits& limits);
  std::string_view detail;
};

// In the order in which the kernel checks.
constexpr PrototypeRule kPrototypeRules[] = {
    {[](const BtfPrototype& proto, Kind, const TraceLimits&) {
       return ReturnsAggregate(proto);
     },
     "returns a struct or union"},
    {[](const BtfPrototype& proto, Kind, const TraceLimits&) {
       return proto.ret.kind == BtfValue::Kind::kOther;
     },
     "returns what is neither a number nor a pointer"},
    {[](const BtfPrototype& proto, Kind kind, const TraceLimits&) {
       return RunsAtReturn(kind) && proto.ret.size > kMaxReturnBytes;
     },
     "returns more than 8 bytes"},
    {[](const BtfPrototype& proto, Kind, const TraceLimits&) {
       return proto.varargs;
     },
     "takes a variable number of arguments"},
    {[](const BtfPrototype& proto, Kind, const TraceLimits&) {
       return proto.largest_arg > kMaxArgBytes;
     },
     "an argument of more than 16 bytes"},
    {[](const BtfPrototype& proto, Kind, const TraceLimits&) {
       return proto.void_arg;
     },
     "an argument without a size"},
    {[](const BtfPrototype& proto, Kind, const TraceLimits&) {
       return proto.other_arg;
     },
     "an argument that is neither a number nor a pointer"},
    {[](const BtfPrototype& proto, Kind, const TraceLimits& limits) {
       return proto.struct_arg && !limits.struct_args;
     },
     "a struct passed by value"},
    // A kernel with tracing_multi (v7.2) always has them.
    {[](const BtfPrototype& proto, Kind kind, const TraceLimits& limits) {
       return proto.union_arg && !limits.union_args && !IsMulti(kind);
     },
     "a union passed by value"},
};

}  // namespace

absl::Span<const TraceDeny> TraceDenyList() { return kDenyList; }

std::optional<Refusal> RefuseTraceName(std::string_view name, Kind kind) {
  const auto found = std::lower_bound(
      kDenyList.begin(), kDenyList.end(), name,
      [](const TraceDeny& a, std::string_view b) { return a.name < b; });
  if (found == kDenyList.end() || found->name != name) return std::nullopt;
  if (!found->only_at_return) {
    return Refusal{Reason::kBlacklisted, found->reason};
  }
  if (!RunsAtReturn(kind)) return std::nullopt;
  return Refusal{Reason::kNoReturn, found->reason};
}

std::optional<Refusal> RefusePrototype(const BtfPrototype& proto, Kind kind,
                                       const TraceLimits& limits, Arena* text) {
  // A large argument takes the place of two.
  if (proto.arg_words > limits.max_args) {
    return Refusal{Reason::kUnsupportedPrototype,
                   text->Copy(absl::StrFormat(
                       "%d arguments in %d words, at most %d can be passed on",
                       proto.arg_cnt, proto.arg_words, limits.max_args))};
  }
  for (const PrototypeRule& rule : kPrototypeRules) {
    if (rule.breaks(proto, kind, limits)) {
      return Refusal{Reason::kUnsupportedPrototype, rule.detail};
    }
  }
  return std::nullopt;
}

}  // namespace ksweep
