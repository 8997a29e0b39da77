// Which functions is it, when the kernel refuses a link and does not say which?
//
// Knows nothing of how links are made, only of sets of slots that are accepted
// or refused as a whole, with an errno.

#ifndef KSWEEP_LIB_ATTACH_LINKING_ISOLATE_H_
#define KSWEEP_LIB_ATTACH_LINKING_ISOLATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ksweep/link.h"

namespace ksweep {

// What a refused attach call may be about.
enum class Fault : uint8_t {
  kTarget,  // one of the functions, or the call: trying tells
  kMemory,  // the size of the link
  kCall,    // nothing that another set of functions would help
};

// kCall for 0 and for every errno that is not known to be about a function.
Fault FaultOf(int err);

// Makes links to sets of slots, and hears what came of it.
class LinkMaker {
 public:
  virtual ~LinkMaker() = default;

  // One link to `slots`, which are ascending; after an error nothing of it is
  // attached. An error without errno ends everything.
  virtual absl::StatusOr<Link> MakeLink(absl::Span<const uint32_t> slots) = 0;

  // Whether a refusal with `err` may be about one of the slots.
  virtual Fault FaultOf(int err) const { return ksweep::FaultOf(err); }

  // True if the kernel should accept the slot, false if it was never sure.
  virtual bool IsTrusted(uint32_t slot) const = 0;

  // A link that stays, to `slots`.
  virtual void Keep(Link link, absl::Span<const uint32_t> slots) = 0;

  // The slot is refused with `err` and will be in no link. An error ends
  // everything.
  virtual absl::Status Refuse(uint32_t slot, int err) = 0;
};

// Slots tried alone to see whether it is the call or the functions.
inline constexpr size_t kMaxProbes = 16;

// Links all of `slots`, ascending, that are accepted, in as few links as
// `max_per_link` and the kernel's memory allow, and has the others refused, in
// no order. After an error the links kept so far are the caller's to drop.
//
// Links made for trying only are closed before the next call, so that one
// descriptor is enough for it.
//
// Calls: 1 if nothing is refused. For k refused of n in one link at most
// 2k·(⌈log2(n/k)⌉ + 1) + 3, with about log2(n) for the first: a set that is
// refused is halved down to its first refused slot. How far that one was from
// the one before tells with how many slots to go on looking, doubling as long
// as they are accepted: refused slots close to each other cost few calls each.
// The whole rest is tried again after the 1st, 2nd, 4th, 8th, … refused slot:
// soon where they are few, and seldom where they are many. When the call itself
// is at fault: 1 + kMaxProbes.
//
// `call_works`: links were made with the same program before, so that it is the
// functions in any case.
absl::Status LinkAccepted(LinkMaker& maker, std::vector<uint32_t> slots,
                          size_t max_per_link, bool call_works = false);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LINKING_ISOLATE_H_
