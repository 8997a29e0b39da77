#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Does nothing, so that what is measured is attaching it. */
SEC("kprobe.multi")
int nothing(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
