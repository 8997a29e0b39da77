#include "common/both_ends.bpf.h"

#define BUCKETS 40

/* The calls of one function: all numbers of 64 bits, see funclatency.cc. */
struct latency {
	__u64 entries; /* begun */
	__u64 calls;   /* ended */
	__u64 total_ns;
	__u64 max_ns;
	__u64 bucket[BUCKETS]; /* [n]: 2^n to 2^(n+1) - 1 ns, [0] also 0 */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* the number of functions, set before load */
	__type(key, __u32);
	__type(value, struct latency);
} latencies SEC(".maps");

static __u32 log2_of(__u64 v)
{
	__u32 r = 0;

	if (v >> 32) {
		v >>= 32;
		r = 32;
	}
	if (v >> 16) {
		v >>= 16;
		r += 16;
	}
	if (v >> 8) {
		v >>= 8;
		r += 8;
	}
	if (v >> 4) {
		v >>= 4;
		r += 4;
	}
	if (v >> 2) {
		v >>= 2;
		r += 2;
	}
	return r + (v >> 1);
}

/*
 * The kernel runs one such program at a time on a CPU and counts what it skips
 * as missed, so that plain additions lose nothing.
 */
static int on_entry(void *ctx, __u32 slot, __u64 *data)
{
	struct latency *l = bpf_map_lookup_elem(&latencies, &slot);

	if (!l)
		return KSWEEP_SESSION_SKIP_RETURN;
	l->entries++;
	*data = bpf_ktime_get_ns();
	return KSWEEP_SESSION_RUN_RETURN;
}

static void on_return(void *ctx, __u32 slot, __u64 start_ns)
{
	__u64 ns = bpf_ktime_get_ns() - start_ns;
	struct latency *l = bpf_map_lookup_elem(&latencies, &slot);
	__u32 bucket = log2_of(ns);

	if (!l)
		return;
	l->calls++;
	l->total_ns += ns;
	if (l->max_ns < ns)
		l->max_ns = ns;
	if (bucket >= BUCKETS)
		bucket = BUCKETS - 1;
	l->bucket[bucket]++;
}
