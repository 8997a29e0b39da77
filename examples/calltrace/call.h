/* What the BPF program of calltrace tells, in C for both sides. */
#ifndef KSWEEP_EXAMPLES_CALLTRACE_CALL_H_
#define KSWEEP_EXAMPLES_CALLTRACE_CALL_H_

#include <linux/types.h>

#define CALLTRACE_MAX_DEPTH 64 /* a power of two */
#define CALLTRACE_COMM_LEN 16

/* A call that is over, sent at its return: so the calls of a thread come with
 * the called ones first, and one lost record is one lost call.
 */
struct calltrace_call {
	__u64 start_ns; /* CLOCK_MONOTONIC */
	__u64 end_ns; /* 0: its return was missed */
	__u64 ret;
	__u64 thread; /* its id, or (CPU + 1) << 32 for an idle thread */
	__u32 pid; /* of the process */
	__u32 slot;
	__u16 cpu; /* at the return */
	__u16 depth; /* 0: the call of an entry function */
	__u32 call_cnt; /* at depth 0: calls below it and itself */
};

/* The record of depth 0. */
struct calltrace_root {
	struct calltrace_call call;
	char comm[CALLTRACE_COMM_LEN];
};

/* A call that is not over. */
struct calltrace_open_call {
	__u64 start_ns;
	__u64 sp;
	__u32 slot;
	__u32 unused;
};

/* What the kernel keeps of a thread that is inside of an entry function. */
struct calltrace_thread {
	__u32 pid;
	__u32 depth; /* open calls */
	__u32 call_cnt;
	__u32 unused;
	struct calltrace_open_call open[CALLTRACE_MAX_DEPTH];
};

/* Calls that are not told, by index of the map `lost`. */
enum calltrace_lost {
	CALLTRACE_LOST_FULL, /* the buffer is full */
	CALLTRACE_LOST_THREADS, /* entry functions in too many threads */
	CALLTRACE_LOST_DEEP, /* deeper than max_depth */
	CALLTRACE_LOST_CNT,
};

#endif /* KSWEEP_EXAMPLES_CALLTRACE_CALL_H_ */
