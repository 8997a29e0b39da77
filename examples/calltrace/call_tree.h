// From calls in the order of their returns to call trees.

#ifndef KSWEEP_EXAMPLES_CALLTRACE_CALL_TREE_H_
#define KSWEEP_EXAMPLES_CALLTRACE_CALL_TREE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "calltrace/call.h"

namespace examples {

enum class CallEnd : uint8_t {
  kReturned,
  kMissed,   // the kernel missed the return
  kRunning,  // not over when the tracing ended
};

struct Call {
  uint32_t slot = 0;
  uint32_t depth = 0;  // of the tree: the root's is 0, a child's one more
  uint64_t start_ns = 0;
  // Without a return the end of the last call below it, or of the tracing.
  uint64_t end_ns = 0;
  uint64_t ret = 0;
  uint16_t cpu = 0;  // at the return
  CallEnd end = CallEnd::kReturned;

  uint64_t duration_ns() const { return end_ns - start_ns; }
};

// A call of an entry function with everything below it.
struct CallTree {
  uint64_t thread = 0;  // its id; above 2^32 an idle thread
  uint32_t pid = 0;     // of the process
  std::string comm;
  std::vector<Call> calls;  // each before those it makes, in order of time
  uint64_t lost = 0;        // calls that the kernel could not tell
};

// Collects the calls of each thread until that of its root comes, the last. Of
// a tree with lost calls the rest is kept, below the next caller that is known.
class CallTrees {
 public:
  using Sink = std::function<void(const CallTree&)>;

  // A thread's calls until its root are kept; those beyond `max_calls` are
  // lost.
  explicit CallTrees(Sink sink, size_t max_calls = size_t{1} << 20)
      : sink_(std::move(sink)), max_calls_(max_calls) {}

  // A call at the depth of 1 or more.
  void Add(const calltrace_call& call);

  // The root of a tree, which goes to the sink.
  void AddRoot(const calltrace_call& call, std::string_view comm);

  // At the end, for each thread that still is in an entry function.
  void AddRunning(uint64_t thread, const calltrace_thread& state,
                  std::string_view comm, uint64_t now_ns);

  // So far.
  uint64_t tree_cnt() const { return tree_cnt_; }
  uint64_t call_cnt() const { return call_cnt_; }      // in trees
  uint64_t missed_cnt() const { return missed_cnt_; }  // without a return

 private:
  void Finish(CallTree tree, uint64_t expected_calls);

  Sink sink_;
  size_t max_calls_;
  absl::flat_hash_map<uint64_t, std::vector<Call>> waiting_;  // by thread
  uint64_t tree_cnt_ = 0;
  uint64_t call_cnt_ = 0;
  uint64_t missed_cnt_ = 0;
};

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_CALLTRACE_CALL_TREE_H_
