#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "fentry_args/call.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} calls SEC(".maps");

/* By slot, the cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the number of functions, set before load */
	__type(key, __u32);
	__type(value, struct fentry_args_spec);
} specs SEC(".maps");

/* The name that a skeleton is to have for it: C++ knows no _Bool. */
typedef _Bool bool;

/* True while everything is attached and `specs` is filled in. */
bool ready;
/* Only this process; 0: all. */
const volatile __u32 only_pid;
/* fentry_args itself, whose own calls would never end. */
const volatile __u32 own_pid;
/* Calls that found the buffer full. */
__u64 lost;

/*
 * The same for fentry.multi and for fentry, which have their arguments in the
 * context only if the program is written for one function: so by helper.
 */
SEC("fentry.multi")
int tell_args(void *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 slot = bpf_get_attach_cookie(ctx);
	struct fentry_args_call *call;
	struct fentry_args_spec *spec;

	if (!ready || pid_tgid >> 32 == own_pid)
		return 0;
	if (only_pid && only_pid != pid_tgid >> 32)
		return 0;
	spec = bpf_map_lookup_elem(&specs, &slot);
	if (!spec)
		return 0;
	call = bpf_ringbuf_reserve(&calls, sizeof(*call), 0);
	if (!call) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	call->time_ns = bpf_ktime_get_ns();
	call->slot = slot;
	call->pid = pid_tgid;
	bpf_get_current_comm(call->comm, sizeof(call->comm));
	for (int i = 0; i < FENTRY_ARGS_MAX; i++) {
		__u64 value = 0;

		/* Fails beyond the last, which changes nothing. */
		if (i < spec->arg_cnt)
			bpf_get_func_arg(ctx, i, &value);
		call->args[i] = value;
	}
	for (int i = 0; i < FENTRY_ARGS_STRINGS; i++) {
		__u64 place = 0;

		call->string_bytes[i] = -1;
		if (i >= spec->string_cnt)
			continue;
		bpf_get_func_arg(ctx, spec->string_args[i], &place);
		call->string_bytes[i] = bpf_probe_read_kernel_str(
			call->strings[i], FENTRY_ARGS_STRING_BYTES,
			(const void *)place);
	}
	bpf_ringbuf_submit(call, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
