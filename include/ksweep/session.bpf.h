/* The kernel's session calls, for BPF programs that run at the entry and at the
 * return of a function: SEC("kprobe.session"), SEC("fsession"),
 * SEC("fsession.multi").
 *
 *   #include <linux/bpf.h>             or "vmlinux.h"
 *   #include <bpf/bpf_helpers.h>
 *   #include <ksweep/session.bpf.h>
 *
 *   SEC("kprobe.session")
 *   int latency(void *ctx)
 *   {
 *           __u64 *start = ksweep_session_cookie(ctx);
 *
 *           if (ksweep_session_is_return(ctx)) {
 *                   record(bpf_ktime_get_ns() - *start);
 *                   return 0;
 *           }
 *           *start = bpf_ktime_get_ns();
 *           return KSWEEP_SESSION_RUN_RETURN;
 *   }
 *
 * The kernel's functions behind these take no argument up to Linux 6.18, and
 * the context in Linux 7.3. libbpf compares the declaration with the kernel's
 * when it loads an object, and up to 1.2 refuses the object if they differ. So
 * an object that uses this header is compiled twice:
 *
 *   clang -target bpf … -DKSWEEP_SESSION_CTX=0 -c x.bpf.c -o x.void.bpf.o
 *   clang -target bpf … -DKSWEEP_SESSION_CTX=1 -c x.bpf.c -o x.ctx.bpf.o
 *
 * with the -I that `pkg-config --cflags ksweep` prints, and the loader opens
 * the one that fits the running kernel: PickSessionObject() and
 * OpenSessionSkeleton() in <ksweep/session.h>. Without -DKSWEEP_SESSION_CTX it
 * is 0. Other than in the calls the two objects do not differ.
 *
 * Requires Linux 6.10 (CONFIG_FPROBE) for kprobe.session.
 */
#ifndef KSWEEP_SESSION_BPF_H_
#define KSWEEP_SESSION_BPF_H_

#ifndef KSWEEP_SESSION_CTX
#define KSWEEP_SESSION_CTX 0
#endif

/* What a kprobe.session program returns at the entry: whether it runs at the
 * return of this call as well. The verifier refuses other values. At the return
 * the value means nothing. fsession programs have to return 0.
 */
#define KSWEEP_SESSION_RUN_RETURN 0
#define KSWEEP_SESSION_SKIP_RETURN 1

#if KSWEEP_SESSION_CTX
extern _Bool bpf_session_is_return(void *ctx) __ksym __weak;
extern __u64 *bpf_session_cookie(void *ctx) __ksym __weak;
#else
extern _Bool bpf_session_is_return(void) __ksym __weak;
extern __u64 *bpf_session_cookie(void) __ksym __weak;
#endif

/* Whether the program runs at the return of the function; else it runs at the
 * entry. `ctx` is the program's context.
 */
static inline __attribute__((always_inline)) _Bool
ksweep_session_is_return(void *ctx)
{
#if KSWEEP_SESSION_CTX
	return bpf_session_is_return(ctx);
#else
	(void)ctx;
	return bpf_session_is_return();
#endif
}

/* 8 bytes of this call of the function: what the program writes at the entry it
 * reads at the return. Never null; not initialized. Nested and concurrent calls
 * of one function have their own. Not the cookie of the link, which is
 * bpf_get_attach_cookie().
 */
static inline __attribute__((always_inline)) __u64 *
ksweep_session_cookie(void *ctx)
{
#if KSWEEP_SESSION_CTX
	return bpf_session_cookie(ctx);
#else
	(void)ctx;
	return bpf_session_cookie();
#endif
}

#endif /* KSWEEP_SESSION_BPF_H_ */
