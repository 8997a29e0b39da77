#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Does nothing, so that what is measured is attaching it. In a section that
 * libbpf does not know: it becomes of any kind.
 */
SEC("ksweep")
int nothing(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
