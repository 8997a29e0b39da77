// Calls for the tests of calltrace, as the BPF program would tell them.

#ifndef KSWEEP_SELFTESTS_UNIT_EXAMPLES_CALLTRACE_SYNTHETIC_CALLS_H_
#define KSWEEP_SELFTESTS_UNIT_EXAMPLES_CALLTRACE_SYNTHETIC_CALLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "calltrace/call_tree.h"
#include "calltrace/function_names.h"

namespace examples::testing {

inline constexpr uint64_t kThread = 42;

// Of kThread, on CPU 0, returning 0.
inline calltrace_call CallAt(uint16_t depth, uint32_t slot, uint64_t start_ns,
                             uint64_t end_ns) {
  calltrace_call call = {};
  call.start_ns = start_ns;
  call.end_ns = end_ns;
  call.thread = kThread;
  call.pid = 40;
  call.slot = slot;
  call.depth = depth;
  return call;
}

// A root, with `call_cnt` calls in its tree.
inline calltrace_call RootAt(uint32_t slot, uint64_t start_ns, uint64_t end_ns,
                             uint32_t call_cnt) {
  calltrace_call call = CallAt(0, slot, start_ns, end_ns);
  call.call_cnt = call_cnt;
  return call;
}

// The slots are the indices.
inline FunctionNames Names() {
  return FunctionNames({"a", "b", "c", "d", "e [mod]"});
}

// A tree as "a(b(c) d)", for short.
inline std::string Shape(const CallTree& tree) {
  std::string shape;
  uint32_t open = 0;
  for (size_t i = 0; i < tree.calls.size(); ++i) {
    const Call& call = tree.calls[i];
    for (; open > call.depth; --open) shape += ")";
    if (!shape.empty()) shape += shape.back() == '(' ? "" : " ";
    shape += Names()[call.slot].substr(0, 1);
    const bool has_calls =
        i + 1 < tree.calls.size() && tree.calls[i + 1].depth > call.depth;
    if (has_calls) {
      shape += "(";
      ++open;
    }
  }
  return shape.append(open, ')');
}

// Keeps the trees.
struct Collected {
  std::vector<CallTree> trees;
  CallTrees builder{[this](const CallTree& tree) { trees.push_back(tree); }};

  Collected() = default;
  Collected(const Collected&) = delete;

  std::string shape(size_t i = 0) const {
    return i < trees.size() ? Shape(trees[i]) : "no tree";
  }
};

}  // namespace examples::testing

#endif  // KSWEEP_SELFTESTS_UNIT_EXAMPLES_CALLTRACE_SYNTHETIC_CALLS_H_
