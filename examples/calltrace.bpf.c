#include <linux/ptrace.h>
#include "common/both_ends.bpf.h"
#include <bpf/bpf_tracing.h>
#include "calltrace/call.h"

/* Returns of calls in an entry function. One buffer for all CPUs, so that the
 * calls of a thread stay in order when it moves.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set before load */
} calls SEC(".maps");

/* The threads that are in an entry function now. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct calltrace_thread);
} threads SEC(".maps");

/* By slot: whether it is an entry function. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the number of functions, set before load */
	__type(key, __u32);
	__type(value, __u8);
} is_entry SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CALLTRACE_LOST_CNT);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

/* Calls deeper than this are not told; at most CALLTRACE_MAX_DEPTH. */
const volatile __u32 max_depth = CALLTRACE_MAX_DEPTH;
/* calltrace itself, whose own calls would never end. */
const volatile __u32 own_pid;
/* The reader is woken when so many bytes wait; it comes by itself too. */
const volatile __u64 wakeup_bytes;

/* The data of a call that is too deep. */
#define TOO_DEEP CALLTRACE_MAX_DEPTH

static const struct calltrace_thread new_thread;

static void count_lost(__u32 why)
{
	__u64 *cnt = bpf_map_lookup_elem(&lost, &why);

	if (cnt)
		(*cnt)++;
}

static struct calltrace_open_call *open_call(struct calltrace_thread *thread,
					     __u32 depth)
{
	return &thread->open[depth & (CALLTRACE_MAX_DEPTH - 1)];
}

static void tell(struct calltrace_thread *thread, __u32 depth, __u64 end_ns,
		 __u64 ret)
{
	struct calltrace_open_call *open = open_call(thread, depth);
	struct calltrace_root root = {};
	struct calltrace_call *call = &root.call;
	__u64 flags = BPF_RB_NO_WAKEUP;
	long err;

	call->start_ns = open->start_ns;
	call->end_ns = end_ns;
	call->ret = ret;
	call->thread = thread_key();
	call->pid = thread->pid;
	call->slot = open->slot;
	call->cpu = bpf_get_smp_processor_id();
	call->depth = depth;
	if (bpf_ringbuf_query(&calls, BPF_RB_AVAIL_DATA) >= wakeup_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	if (depth) {
		err = bpf_ringbuf_output(&calls, call, sizeof(*call), flags);
	} else {
		call->call_cnt = thread->call_cnt;
		bpf_get_current_comm(root.comm, sizeof(root.comm));
		err = bpf_ringbuf_output(&calls, &root, sizeof(root), flags);
	}
	if (err)
		count_lost(CALLTRACE_LOST_FULL);
}

/* Ends the calls from `depth` on, whose returns were missed. */
static void end_missed(struct calltrace_thread *thread, __u32 depth)
{
	for (int i = 0; i < CALLTRACE_MAX_DEPTH; i++) {
		if (thread->depth <= depth)
			break;
		thread->depth--;
		tell(thread, thread->depth, 0, 0);
	}
}

/*
 * An open call is over if the stack is back above its place. At the same place
 * can only be a call that it ended in (a jump, not a call), of another function.
 */
static _Bool is_over(const struct calltrace_open_call *open, __u32 slot,
		     __u64 sp)
{
	const __u64 stack_mask = ~(__u64)(16384 - 1);

	if ((open->sp & stack_mask) != (sp & stack_mask))
		return 0; /* an interrupt has a stack of its own */
	return open->sp < sp || (open->sp == sp && open->slot == slot);
}

/* How many calls are open when one with this stack pointer begins. */
static __u32 open_depth(struct calltrace_thread *thread, __u32 slot, __u64 sp)
{
	__u32 depth = thread->depth;

	for (int i = 0; i < CALLTRACE_MAX_DEPTH; i++) {
		if (!depth || !is_over(open_call(thread, depth - 1), slot, sp))
			break;
		depth--;
	}
	return depth;
}

static struct calltrace_thread *enter(__u64 key)
{
	if (bpf_get_current_pid_tgid() >> 32 == own_pid)
		return 0;
	if (bpf_map_update_elem(&threads, &key, &new_thread, BPF_NOEXIST))
		count_lost(CALLTRACE_LOST_THREADS);
	return bpf_map_lookup_elem(&threads, &key);
}

static int on_entry(void *ctx, __u32 slot, __u64 *data)
{
	__u64 sp = PT_REGS_SP((struct pt_regs *)ctx);
	__u64 key = thread_key();
	struct calltrace_thread *thread = bpf_map_lookup_elem(&threads, &key);
	__u8 *entry = bpf_map_lookup_elem(&is_entry, &slot);
	struct calltrace_open_call *open;

	if (!entry)
		return KSWEEP_SESSION_SKIP_RETURN;
	if (thread)
		end_missed(thread, open_depth(thread, slot, sp));
	else if (*entry)
		thread = enter(key);
	if (!thread || !(thread->depth || *entry))
		return KSWEEP_SESSION_SKIP_RETURN;

	/* A pair has to see the returns of all calls that could be mixed up. */
	*data = TOO_DEEP;
	if (thread->depth >= max_depth) {
		count_lost(CALLTRACE_LOST_DEEP);
		return KSWEEP_SESSION_RUN_RETURN;
	}
	if (!thread->depth) {
		thread->pid = bpf_get_current_pid_tgid() >> 32;
		thread->call_cnt = 0;
	}
	*data = thread->depth;
	open = open_call(thread, thread->depth);
	open->slot = slot;
	open->sp = sp;
	thread->depth++;
	thread->call_cnt++;
	open->start_ns = bpf_ktime_get_ns();
	return KSWEEP_SESSION_RUN_RETURN;
}

static void on_return(void *ctx, __u32 slot, __u64 depth)
{
	__u64 end_ns = bpf_ktime_get_ns();
	__u64 key = thread_key();
	struct calltrace_thread *thread = bpf_map_lookup_elem(&threads, &key);

	if (!thread || thread->depth <= depth ||
	    open_call(thread, depth)->slot != slot)
		return;
	end_missed(thread, depth + 1);
	thread->depth = depth;
	tell(thread, depth, end_ns, PT_REGS_RC((struct pt_regs *)ctx));
	if (!depth)
		bpf_map_delete_elem(&threads, &key);
}
