// A call tree as ftrace's function_graph tracer shows it.

#ifndef KSWEEP_EXAMPLES_CALLTRACE_TEXT_H_
#define KSWEEP_EXAMPLES_CALLTRACE_TEXT_H_

#include <cstdint>
#include <string>

#include "calltrace/call_tree.h"
#include "calltrace/function_names.h"

namespace examples {

// The return value as the kernel's people would read it: "-ENOENT", "42", or
// hexadecimal for what looks like an address. How wide the value is, and
// whether there is one, is not known: 0x00000000fffffffe is -2 of an int.
std::string ReturnText(uint64_t ret);

// Appends a line for each call that makes none, and two for the others, the
// second with the duration and the return value:
//
//   cat-1234, at 52.104288 s
//    0)               |  do_sys_openat2() {
//    0)   1.204 us    |    getname(); /* ret=0xffff888003a71000 */
//    0) + 13.998 us   |  } /* do_sys_openat2 ret=3 */
//
// Before the duration stands + for more than 10 us, ! 100 us, # 1 ms, * 10 ms,
// @ 100 ms, $ 1 s.
void AppendTreeText(const CallTree& tree, const FunctionNames& names,
                    std::string* out);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_CALLTRACE_TEXT_H_
