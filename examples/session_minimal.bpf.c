#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <ksweep/session.bpf.h>

__u64 calls, nanoseconds; /* of all functions together */

SEC("kprobe.session")
int both_ends(void *ctx)
{
	__u64 *start = ksweep_session_cookie(ctx); /* of this call */

	if (!ksweep_session_is_return(ctx)) {
		*start = bpf_ktime_get_ns();
		return KSWEEP_SESSION_RUN_RETURN;
	}
	__sync_fetch_and_add(&calls, 1);
	__sync_fetch_and_add(&nanoseconds, bpf_ktime_get_ns() - *start);
	return 0;
}
char LICENSE[] SEC("license") = "Dual BSD/GPL";
