#include "calltrace/call_tree.h"

#include <algorithm>
#include <tuple>

namespace examples {
namespace {

Call CallOf(const calltrace_call& told) {
  Call call = {.slot = told.slot,
               .depth = told.depth,
               .start_ns = told.start_ns,
               .end_ns = told.end_ns,
               .ret = told.ret,
               .cpu = told.cpu,
               .end = CallEnd::kReturned};
  if (told.end_ns == 0) {
    call.end = CallEnd::kMissed;
    call.end_ns = call.start_ns;
  }
  return call;
}

// Whether `caller` made `call`, which began later.
bool IsCaller(const Call& caller, const Call& call) {
  return caller.depth < call.depth &&
         (caller.end != CallEnd::kReturned || caller.end_ns >= call.end_ns);
}

// Callers first, and the depths without the gaps that lost callers leave.
void Arrange(std::vector<Call>* calls) {
  // A clock may stand still between a call and what it calls first.
  std::sort(calls->begin(), calls->end(), [](const Call& a, const Call& b) {
    return std::tie(a.start_ns, a.depth) < std::tie(b.start_ns, b.depth);
  });
  std::vector<size_t> callers;
  std::vector<uint32_t> depths(calls->size());
  for (size_t i = 0; i < calls->size(); ++i) {
    const Call& call = (*calls)[i];
    while (!callers.empty() && !IsCaller((*calls)[callers.back()], call)) {
      callers.pop_back();
    }
    depths[i] = static_cast<uint32_t>(callers.size());
    for (const size_t caller : callers) {
      Call& open = (*calls)[caller];
      if (open.end == CallEnd::kMissed) {
        open.end_ns = std::max(open.end_ns, call.end_ns);
      }
    }
    callers.push_back(i);
  }
  for (size_t i = 0; i < calls->size(); ++i) (*calls)[i].depth = depths[i];
}

}  // namespace

void CallTrees::Add(const calltrace_call& call) {
  std::vector<Call>& calls = waiting_[call.thread];
  if (calls.size() < max_calls_) calls.push_back(CallOf(call));
}

void CallTrees::AddRoot(const calltrace_call& call, std::string_view comm) {
  CallTree tree = {.thread = call.thread,
                   .pid = call.pid,
                   .comm = std::string(comm),
                   .calls = std::move(waiting_[call.thread])};
  waiting_.erase(call.thread);
  tree.calls.push_back(CallOf(call));
  Finish(std::move(tree), call.call_cnt);
}

void CallTrees::AddRunning(uint64_t thread, const calltrace_thread& state,
                           std::string_view comm, uint64_t now_ns) {
  CallTree tree = {.thread = thread,
                   .pid = state.pid,
                   .comm = std::string(comm),
                   .calls = std::move(waiting_[thread])};
  waiting_.erase(thread);
  const uint32_t depth = std::min<uint32_t>(state.depth, CALLTRACE_MAX_DEPTH);
  for (uint32_t i = 0; i < depth; ++i) {
    tree.calls.push_back(
        {.slot = state.open[i].slot,
         .depth = i,
         .start_ns = state.open[i].start_ns,
         .end_ns = std::max<uint64_t>(now_ns, state.open[i].start_ns),
         .end = CallEnd::kRunning});
  }
  if (depth > 0) Finish(std::move(tree), state.call_cnt);
}

void CallTrees::Finish(CallTree tree, uint64_t expected_calls) {
  // Before it are the calls of a tree whose root was lost.
  const auto root = std::find_if(tree.calls.begin(), tree.calls.end(),
                                 [](const Call& c) { return c.depth == 0; });
  const uint64_t start_ns = root->start_ns;
  std::erase_if(tree.calls,
                [&](const Call& c) { return c.start_ns < start_ns; });
  Arrange(&tree.calls);
  const uint64_t cnt = tree.calls.size();
  tree.lost = expected_calls > cnt ? expected_calls - cnt : 0;
  for (const Call& call : tree.calls) {
    if (call.end == CallEnd::kMissed) ++missed_cnt_;
  }
  ++tree_cnt_;
  call_cnt_ += cnt;
  sink_(tree);
}

}  // namespace examples
