/* What the BPF program of fentry_args and its reader agree on. */
#ifndef KSWEEP_EXAMPLES_FENTRY_ARGS_CALL_H_
#define KSWEEP_EXAMPLES_FENTRY_ARGS_CALL_H_

#include <linux/types.h>

/* The most that any kernel's trampolines pass, 8 bytes each. */
#define FENTRY_ARGS_MAX 12
/* Strings of a call that are read, and the bytes of each with the final 0. */
#define FENTRY_ARGS_STRINGS 3
#define FENTRY_ARGS_STRING_BYTES 64

/* What to read of a function's arguments. */
struct fentry_args_spec {
	__u32 arg_cnt;
	__u32 string_cnt;
	__u32 string_args[FENTRY_ARGS_STRINGS]; /* the numbers of these args */
};

struct fentry_args_call {
	__u64 time_ns;
	__u32 slot;
	__u32 pid; /* of the thread */
	char comm[16];
	__u64 args[FENTRY_ARGS_MAX];
	/* With the final 0; negative if it could not be read. */
	__s32 string_bytes[FENTRY_ARGS_STRINGS];
	char strings[FENTRY_ARGS_STRINGS][FENTRY_ARGS_STRING_BYTES];
};

#endif /* KSWEEP_EXAMPLES_FENTRY_ARGS_CALL_H_ */
