// What watcher prints.

#ifndef KSWEEP_EXAMPLES_WATCHER_REPORT_H_
#define KSWEEP_EXAMPLES_WATCHER_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ksweep/attachment.h"

namespace examples {

// Attached functions of each module; "" is the core kernel.
using AttachedCounts = std::map<std::string, uint64_t>;
AttachedCounts CountByModule(const ksweep::Attachment& attachment);

// A line for each module that has more or fewer: "+ dummy: 12 functions
// attached", or "- dummy: WHY".
std::string ChangeLines(const AttachedCounts& before,
                        const AttachedCounts& after, std::string_view why);

// The module of every slot there was, also of those without a function by now,
// whose calls are still in the map.
class SlotOwners {
 public:
  // To be called after every change of the attachment.
  void Learn(const ksweep::Attachment& attachment);

  // By slot.
  const std::vector<std::string>& modules() const { return modules_; }

  // How often the module got slots: attached, or attached anew.
  uint64_t Times(const std::string& module) const;

 private:
  std::vector<std::string> modules_;
  std::map<std::string, uint64_t> times_;
};

struct WatchResult {
  std::vector<uint64_t> calls;  // of each slot
  double seconds = 0;
  uint64_t polls = 0;   // of the module list
  uint64_t sweeps = 0;  // of kallsyms
};

// A line for each module, the most called first, and the summary.
std::string WatchText(const SlotOwners& owners, const WatchResult& result);

// One object:
//
//   modules  [{module, times, slots, calls}]; null is the core kernel
//   seconds, polls, sweeps
std::string WatchJson(const SlotOwners& owners, const WatchResult& result);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_WATCHER_REPORT_H_
