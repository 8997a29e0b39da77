/* Entry and return of functions, the same code for both ways to attach:
 *
 *   session   one program for both ends (Linux 6.10). The kernel keeps 8 bytes
 *             for each call.
 *   pair      a program for each end, on any kernel. The 8 bytes are kept here,
 *             on a stack for each thread.
 *
 * The program that includes this defines on_entry() and on_return() and loads
 * either both_ends() or at_entry() and at_return(): see OpenBothEnds() in
 * both_ends.h.
 */
#ifndef KSWEEP_EXAMPLES_COMMON_BOTH_ENDS_BPF_H_
#define KSWEEP_EXAMPLES_COMMON_BOTH_ENDS_BPF_H_

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <ksweep/session.bpf.h>

/* A call begins; `data` is for its return. Returns whether the return matters,
 * KSWEEP_SESSION_RUN_RETURN or KSWEEP_SESSION_SKIP_RETURN.
 */
static int on_entry(void *ctx, __u32 slot, __u64 *data);

/* The call whose entry left `data` ends. Calls of one thread that are nested or
 * recursive come with the data of their own.
 */
static void on_return(void *ctx, __u32 slot, __u64 data);

/* The name that a skeleton is to have for it: C++ knows no _Bool. */
typedef _Bool bool;

/* True while everything is attached, see AttachOptions::ready. */
bool ready;
/* Only this process; 0: all. */
const volatile __u32 only_pid;
/* Calls that a pair cannot follow: too many threads at once, or too deep. */
__u64 lost_entries;
/* Returns that a pair never saw, found by the return of a caller. */
__u64 lost_returns;

#define MAX_FRAMES 64 /* nested calls of a thread; a power of two */

struct frame {
	__u64 data;
	__u32 slot;
};

struct frames {
	__u32 cnt;
	struct frame frame[MAX_FRAMES];
};

/* Used by a pair only; a session leaves it at one element. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* kMaxThreads of both_ends.h for a pair */
	__type(key, __u64);
	__type(value, struct frames);
} frames_of SEC(".maps");

static const struct frames no_frames;

/* Which thread this is. The idle threads, one a CPU, have all the id 0. */
static __u64 thread_key(void)
{
	__u32 tid = bpf_get_current_pid_tgid();

	return tid ? tid : (__u64)(bpf_get_smp_processor_id() + 1) << 32;
}

static inline _Bool is_wanted(void)
{
	return ready &&
	       (!only_pid || only_pid == bpf_get_current_pid_tgid() >> 32);
}

static struct frames *push_frames(__u64 key)
{
	struct frames *frames = bpf_map_lookup_elem(&frames_of, &key);

	if (frames)
		return frames;
	bpf_map_update_elem(&frames_of, &key, &no_frames, BPF_NOEXIST);
	return bpf_map_lookup_elem(&frames_of, &key);
}

SEC("kprobe.session")
int both_ends(void *ctx)
{
	__u32 slot = bpf_get_attach_cookie(ctx);
	__u64 *data = ksweep_session_cookie(ctx);

	if (ksweep_session_is_return(ctx)) {
		if (ready)
			on_return(ctx, slot, *data);
		return 0;
	}
	return is_wanted() ? on_entry(ctx, slot, data)
			   : KSWEEP_SESSION_SKIP_RETURN;
}

SEC("kprobe.multi")
int at_entry(void *ctx)
{
	__u32 slot = bpf_get_attach_cookie(ctx);
	struct frames *frames;
	__u64 data = 0;
	__u32 cnt;

	if (!is_wanted())
		return 0;
	frames = push_frames(thread_key());
	if (!frames || frames->cnt >= MAX_FRAMES) {
		__sync_fetch_and_add(&lost_entries, 1);
		return 0;
	}
	if (on_entry(ctx, slot, &data) == KSWEEP_SESSION_SKIP_RETURN)
		return 0;
	cnt = frames->cnt & (MAX_FRAMES - 1);
	frames->frame[cnt].data = data;
	frames->frame[cnt].slot = slot;
	frames->cnt = cnt + 1;
	return 0;
}

SEC("kretprobe.multi")
int at_return(void *ctx)
{
	__u32 slot = bpf_get_attach_cookie(ctx);
	__u64 key = thread_key();
	struct frames *frames;
	__u32 cnt, i;

	if (!is_wanted())
		return 0;
	frames = bpf_map_lookup_elem(&frames_of, &key);
	if (!frames)
		return 0;
	cnt = frames->cnt;
	/* Above its own frame are those of calls whose return was missed. */
	for (i = 1; i <= MAX_FRAMES && i <= cnt; i++) {
		struct frame *frame =
			&frames->frame[(cnt - i) & (MAX_FRAMES - 1)];

		if (frame->slot != slot)
			continue;
		if (i > 1)
			__sync_fetch_and_add(&lost_returns, i - 1);
		frames->cnt = cnt - i;
		on_return(ctx, slot, frame->data);
		break;
	}
	if (!frames->cnt)
		bpf_map_delete_elem(&frames_of, &key);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif /* KSWEEP_EXAMPLES_COMMON_BOTH_ENDS_BPF_H_ */
