// What a symbol's name says: pads and stubs, suffixes of the compiler.

#ifndef KSWEEP_LIB_RESOLVE_SYMBOL_NAME_H_
#define KSWEEP_LIB_RESOLVE_SYMBOL_NAME_H_

#include <string_view>

namespace ksweep {

// True for function symbols that are no functions: padding in front of one,
// static-call stubs, CFI entries, cold halves, mapping symbols of arm and
// RISC-V, placeholders of ftrace.
bool IsNeverTarget(std::string_view name);

// The same, for who knows whether the name has a dot.
bool HasNeverPrefix(std::string_view name);
bool HasNeverSuffix(std::string_view name);
inline bool IsNeverTarget(std::string_view name, bool has_dot) {
  return name.empty() ||
         ((name[0] == '_' || name[0] == '$') && HasNeverPrefix(name)) ||
         (has_dot && HasNeverSuffix(name));
}

// True for a glob that could only match such names.
bool IsNeverTargetPattern(std::string_view pattern);

// True for owners that are no modules: BPF programs, and what the kernel makes
// for ftrace and kprobes.
bool IsPseudoOwner(std::string_view module);

// `name` without the `.llvm.<hash>` that a link-time optimising build appends
// to a promoted static function; the whole of it if there is none.
std::string_view StripLlvm(std::string_view name);

// Removes one suffix of a copy made by the compiler (.isra.N, .constprop.N,
// .part.N, .lto_priv.N, .<hash>). False if `name` ends in none.
bool StripCloneSuffix(std::string_view* name);

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_SYMBOL_NAME_H_
