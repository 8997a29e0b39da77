#include <linux/ptrace.h>
#include "common/both_ends.bpf.h"
#include <bpf/bpf_tracing.h>

#define MAX_CHAIN 16 /* functions of a chain, a power of two */
#define MAX_ERRNO 4095

/* What user space reads, see errtrace.cc. */
struct chain_event {
	__u32 pid;
	__s32 err;
	__u32 cnt; /* may be more than slots fit */
	__u32 slot[MAX_CHAIN];
	char comm[16];
};

/* An error on its way up: the functions that returned it, one the caller of the
 * other, possibly with untraced ones between them.
 */
struct thread {
	__u32 depth; /* traced calls under way */
	__u32 at;    /* the depth of the last function that returned the error */
	__s32 err;   /* 0: none is on its way */
	__u32 cnt;
	__u32 slot[MAX_CHAIN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096); /* threads in a call at the same time */
	__type(key, __u64);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

static const struct thread new_thread;
/* Chains that found no room in the buffer. */
__u64 lost_events;

/* A function that returns an int leaves the upper half of the register as it
 * likes. One that returns nothing leaves all of it, often its callee's result.
 */
static __s32 error_of(__u64 rc)
{
	if (rc >= (__u64)-MAX_ERRNO)
		return -rc;
	if (!(rc >> 32) && (__u32)rc >= (__u32)-MAX_ERRNO)
		return -(__u32)rc;
	return 0;
}

static int on_entry(void *ctx, __u32 slot, __u64 *data)
{
	__u64 key = thread_key();
	struct thread *t = bpf_map_lookup_elem(&threads, &key);

	if (!t) {
		bpf_map_update_elem(&threads, &key, &new_thread, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&threads, &key);
	}
	if (!t) {
		__sync_fetch_and_add(&lost_entries, 1);
		return KSWEEP_SESSION_SKIP_RETURN;
	}
	*data = ++t->depth;
	return KSWEEP_SESSION_RUN_RETURN;
}

static void send(const struct thread *t)
{
	struct chain_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		__sync_fetch_and_add(&lost_events, 1);
		return;
	}
	e->pid = bpf_get_current_pid_tgid() >> 32;
	e->err = t->err;
	e->cnt = t->cnt;
	__builtin_memcpy(e->slot, t->slot, sizeof(e->slot));
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	bpf_ringbuf_submit(e, 0);
}

static void add_to_chain(struct thread *t, __u32 slot, __u32 depth, __s32 err)
{
	/* The caller went on with the error to another function, as
	 * path_openat() to link_path_walk(), which says what it is told.
	 */
	if (err == t->err && depth == t->at)
		return;
	/* Not what the one before returned to its caller: an error of its own. */
	if (err != t->err || depth > t->at) {
		t->err = err;
		t->cnt = 0;
	}
	t->at = depth;
	if (t->cnt < MAX_CHAIN)
		t->slot[t->cnt & (MAX_CHAIN - 1)] = slot;
	t->cnt++;
}

static void on_return(void *ctx, __u32 slot, __u64 depth)
{
	__s32 err = error_of(PT_REGS_RC((struct pt_regs *)ctx));
	__u64 key = thread_key();
	struct thread *t = bpf_map_lookup_elem(&threads, &key);

	if (!t)
		return;
	t->depth = depth - 1;
	if (err)
		add_to_chain(t, slot, depth, err);
	else if (depth < t->at)
		t->err = 0; /* a caller has dealt with it */
	if (depth > 1)
		return;
	if (t->err && t->at == 1)
		send(t);
	bpf_map_delete_elem(&threads, &key);
}
