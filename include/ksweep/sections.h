// Section names of BPF programs that the linked libbpf does not know yet.

#ifndef KSWEEP_SECTIONS_H_
#define KSWEEP_SECTIONS_H_

#include "absl/status/status.h"

namespace ksweep {

// Makes bpf_object__open() and bpf_object__load() understand, with any libbpf
// from 1.1 on,
//
//   SEC("kprobe.session")     known to libbpf since 1.5
//   SEC("fsession")           … 1.7; also "fsession.s", the sleepable form
//   SEC("fentry.multi"), SEC("fexit.multi"), SEC("fsession.multi")
//                             … 1.8; also with ".s"
//
// each with or without "/…" behind it, which is a comment but for
// SEC("fsession/FUNCTION"): that names a function of the core kernel, as in
// SEC("fentry/FUNCTION"). For another, of a module for example, call
// bpf_program__set_attach_target() before the load.
//
// What libbpf knows itself is left to it. Programs of the others are not
// attached by bpf_program__attach() or a skeleton's attach(), whatever their
// section says: that is Attach()'s part. A program that PrepareProgram() is
// called for needs none of this.
//
// Call it before any bpf_object__open() of the process, in main() for example:
// libbpf keeps its table of section names by address, and an open object points
// into it. Both are process-global; so a program that registers names of its
// own (libbpf_register_prog_handler()) must not do so at the same time in
// another thread. Calls of this function may come from any threads; the second
// and later ones change nothing.
//
// FailedPrecondition if the process has registered one of the names for
// something else. Asks no kernel: whether it takes such programs shows at load.
absl::Status RegisterSections();

}  // namespace ksweep

#endif  // KSWEEP_SECTIONS_H_
