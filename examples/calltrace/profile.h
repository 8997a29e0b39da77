// The time of many call trees, added up by call stack.

#ifndef KSWEEP_EXAMPLES_CALLTRACE_PROFILE_H_
#define KSWEEP_EXAMPLES_CALLTRACE_PROFILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "calltrace/call_tree.h"
#include "calltrace/function_names.h"

namespace examples {

// A tree of call stacks. Below the root is a node for each command, below that
// the entry functions. Time is from the entry of a call to its return, whether
// the CPU worked for it or the thread slept.
class Profile {
 public:
  struct Node {
    std::string name;
    uint64_t calls = 0;
    uint64_t self_ns = 0;   // outside of the calls that it made
    uint64_t total_ns = 0;  // itself and all below it; the sum of their self_ns
    std::map<std::string, Node> children;
  };

  Profile() { root_.name = "all"; }

  void Add(const CallTree& tree, const FunctionNames& names);

  // Its name is "all".
  const Node& root() const { return root_; }

 private:
  Node root_;
};

// "command;function;function 1234\n" for each call stack, sorted, the number
// being its own nanoseconds: what flamegraph.pl, inferno and speedscope read.
std::string FoldedText(const Profile& profile);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_CALLTRACE_PROFILE_H_
