#include "calltrace/profile.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/table.h"

namespace examples {
namespace {

Profile::Node& ChildOf(Profile::Node& node, const std::string& name) {
  Profile::Node& child = node.children[name];
  child.name = name;
  return child;
}

// By call, the time outside of the calls it made.
std::vector<uint64_t> SelfTimes(const std::vector<Call>& calls) {
  std::vector<uint64_t> self(calls.size());
  std::vector<size_t> callers;
  for (size_t i = 0; i < calls.size(); ++i) {
    callers.resize(calls[i].depth);
    self[i] = calls[i].duration_ns();
    if (!callers.empty()) {
      // Calls without a return may reach beyond their caller.
      uint64_t& caller = self[callers.back()];
      caller -= std::min(caller, calls[i].duration_ns());
    }
    callers.push_back(i);
  }
  return self;
}

// In a name the separators of the format would end it.
void AppendName(std::string_view name, std::string* out) {
  for (const char c : Printable(name)) out->push_back(c == ';' ? ':' : c);
}

void AppendFolded(const Profile::Node& node, const std::string& prefix,
                  std::string* out) {
  std::string stack = prefix;
  AppendName(node.name, &stack);
  if (node.self_ns > 0) {
    absl::StrAppendFormat(out, "%s %d\n", stack, node.self_ns);
  }
  stack.push_back(';');
  for (const auto& [name, child] : node.children) {
    AppendFolded(child, stack, out);
  }
}

}  // namespace

void Profile::Add(const CallTree& tree, const FunctionNames& names) {
  const std::vector<uint64_t> self = SelfTimes(tree.calls);
  std::vector<Node*> stack = {&root_, &ChildOf(root_, tree.comm)};
  for (size_t i = 0; i < tree.calls.size(); ++i) {
    const Call& call = tree.calls[i];
    stack.resize(call.depth + 2);
    Node& node = ChildOf(*stack.back(), names[call.slot]);
    stack.push_back(&node);
    ++node.calls;
    node.self_ns += self[i];
    for (Node* above : stack) above->total_ns += self[i];
  }
}

std::string FoldedText(const Profile& profile) {
  std::string text;
  for (const auto& [name, node] : profile.root().children) {
    AppendFolded(node, "", &text);
  }
  return text;
}

}  // namespace examples
