// What has changed between two resolutions, as before and after a module was
// loaded.
//
//   ksweep::ResolutionDiff diff = ksweep::Diff(before, after);
//   for (uint32_t i : diff.added) { … after.targets()[i].name … }

#ifndef KSWEEP_DIFF_H_
#define KSWEEP_DIFF_H_

#include <cstdint>
#include <vector>

#include "ksweep/resolve.h"

namespace ksweep {

// A target of both, as its index in each.
struct TargetPair {
  uint32_t older = 0;
  uint32_t newer = 0;

  friend bool operator==(const TargetPair&, const TargetPair&) = default;
};

// Each target of the older one is in exactly one of `dropped`, `kept` and
// `moved`; each of the newer one in exactly one of `added`, `kept` and `moved`.
struct ResolutionDiff {
  std::vector<uint32_t> added;    // of the newer one, ascending
  std::vector<uint32_t> dropped;  // of the older one, ascending
  // The same owner, address and name. A name that is an alias in the other
  // resolution is the same: which of several names of a function is the
  // target's depends on the requests.
  std::vector<TargetPair> kept;  // ascending
  // The same owner and name, but another address: a module was loaded again, or
  // the kernel booted again. Several of one name are paired in address order.
  std::vector<TargetPair> moved;  // ascending by `newer`

  // True if the targets are the same functions.
  bool empty() const {
    return added.empty() && dropped.empty() && moved.empty();
  }
};

// Compares the targets, and nothing else of them than address, owner and name.
// If one of the resolutions is by name, so is the comparison, and nothing
// moves. O(targets), and O(n · log n) for the n targets that are not kept.
// Thread-safe.
ResolutionDiff Diff(const Resolution& older, const Resolution& newer);

}  // namespace ksweep

#endif  // KSWEEP_DIFF_H_
