#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <ksweep/session.bpf.h>

/* Both ends of the calls of a function, by cookie. */
struct calls {
	__u64 entries;
	__u64 returns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the number of functions, set before load */
	__type(key, __u32);
	__type(value, struct calls);
} calls SEC(".maps");

/* Only calls by this process count; 0: all. */
__u32 only_pid;
/* The entry run of this slot says that it wants no return run. */
__u32 vetoed_slot = 0xffffffff;
/* Runs of any function, those whose cookie is not in the map, and returns that
 * did not find what the entry left.
 */
__u64 all_runs;
__u64 bad_cookies;
__u64 bad_session_cookies;

/* What an entry leaves for its return: differs between functions and calls of
 * different threads.
 */
static __u64 token_of(__u32 slot)
{
	return bpf_get_current_pid_tgid() << 32 ^ slot ^ 0x5e5510ull << 40;
}

static struct calls *find_calls(__u32 slot)
{
	struct calls *found = bpf_map_lookup_elem(&calls, &slot);

	__sync_fetch_and_add(&all_runs, 1);
	if (!found)
		__sync_fetch_and_add(&bad_cookies, 1);
	return found;
}

static int at_entry(void *ctx, __u32 slot)
{
	struct calls *found;

	if (only_pid && only_pid != bpf_get_current_pid_tgid() >> 32)
		return KSWEEP_SESSION_SKIP_RETURN;
	found = find_calls(slot);
	if (!found)
		return KSWEEP_SESSION_SKIP_RETURN;
	__sync_fetch_and_add(&found->entries, 1);
	*ksweep_session_cookie(ctx) = token_of(slot);
	return slot == vetoed_slot ? KSWEEP_SESSION_SKIP_RETURN :
				     KSWEEP_SESSION_RUN_RETURN;
}

static int at_return(void *ctx, __u32 slot)
{
	struct calls *found = find_calls(slot);

	if (!found)
		return 0;
	__sync_fetch_and_add(&found->returns, 1);
	if (*ksweep_session_cookie(ctx) != token_of(slot))
		__sync_fetch_and_add(&bad_session_cookies, 1);
	return 0;
}

SEC("kprobe.session")
int count_both_ends(void *ctx)
{
	__u32 slot = bpf_get_attach_cookie(ctx);

	return ksweep_session_is_return(ctx) ? at_return(ctx, slot) :
					       at_entry(ctx, slot);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
