#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Hits by cookie, and the function ip that came with it last. */
struct hit {
	__u64 cnt;
	__u64 ip;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the number of functions, set before load */
	__type(key, __u32);
	__type(value, struct hit);
} hits SEC(".maps");

/* Only hits of this process count; 0: of all. */
__u32 only_pid;
/* Hits of any function, and those whose cookie is not in the map. */
__u64 all_hits;
__u64 bad_cookies;

/* A name that libbpf does not know: PrepareProgram() makes it of any kind. */
SEC("ksweep")
int count(void *ctx)
{
	__u32 slot = bpf_get_attach_cookie(ctx);
	struct hit *hit;

	if (only_pid && only_pid != bpf_get_current_pid_tgid() >> 32)
		return 0;
	__sync_fetch_and_add(&all_hits, 1);
	hit = bpf_map_lookup_elem(&hits, &slot);
	if (!hit) {
		__sync_fetch_and_add(&bad_cookies, 1);
		return 0;
	}
	__sync_fetch_and_add(&hit->cnt, 1);
	hit->ip = bpf_get_func_ip(ctx);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
