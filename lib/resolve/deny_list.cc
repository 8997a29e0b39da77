#include <array>

#include "ksweep/resolve.h"

namespace ksweep {
namespace {

constexpr std::string_view kIdle =
    "runs in the idle loop, where RCU is not watching";
constexpr std::string_view kRcu =
    "part of RCU, which every program run enters and leaves";
constexpr std::string_view kMigrate =
    "called around every BPF program run, so a hit would hit again";
constexpr std::string_view kPreempt =
    "called on entry to and exit from every probe";

// What the attach benchmarks of the kernel's own selftests leave out as unsafe
// (tools/testing/selftests/bpf/trace_helpers.c).
constexpr std::array<DefaultDeny, 13> kList = {{
    {"rcu_*", kRcu},
    {"arch_cpu_idle", kIdle},
    {"default_idle", kIdle},
    {"bpf_dispatcher_xdp_func", "rewritten whenever an XDP program is loaded"},
    {"migrate_disable", kMigrate},
    {"migrate_enable", kMigrate},
    {"___migrate_enable", kMigrate},
    {"rcu_read_unlock_strict", kRcu},
    {"preempt_count_add", kPreempt},
    {"preempt_count_sub", kPreempt},
    {"__rcu_read_lock", kRcu},
    {"__rcu_read_unlock", kRcu},
    {"bpf_get_numa_node_id", "a helper that programs call while they run"},
}};

}  // namespace

absl::Span<const DefaultDeny> DefaultDenyList() { return kList; }

}  // namespace ksweep
