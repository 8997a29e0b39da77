#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Calls of each function, by the cookie of its attachment. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* the number of functions, set before load */
	__type(key, __u32);
	__type(value, __u64);
} calls SEC(".maps");

/* The name that a skeleton is to have for it: C++ knows no _Bool. */
typedef _Bool bool;

/* True while everything is attached, see AttachOptions::ready. */
bool ready;
/* Only this process; 0: all. */
const volatile __u32 only_pid;

SEC("kprobe.multi")
int count_call(void *ctx)
{
	__u32 slot;
	__u64 *cnt;

	if (!ready)
		return 0;
	if (only_pid && only_pid != bpf_get_current_pid_tgid() >> 32)
		return 0;
	slot = bpf_get_attach_cookie(ctx);
	/*
	 * The kernel runs one such program at a time on a CPU and counts what
	 * it skips as missed, so that a plain increment loses nothing.
	 */
	cnt = bpf_map_lookup_elem(&calls, &slot);
	if (cnt)
		(*cnt)++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
