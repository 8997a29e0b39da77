// The functions that BTF requests ask for, by name, before the sweep.

#ifndef KSWEEP_LIB_RESOLVE_BTF_PLAN_H_
#define KSWEEP_LIB_RESOLVE_BTF_PLAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ksweep/request.h"
#include "lib/base/arena.h"
#include "lib/resolve/refusal.h"
#include "lib/source/btf_store.h"

namespace ksweep {

// A function that a request asks for: that name, in the owner whose BTF it is
// of.
struct BtfName {
  std::string_view name;  // lives as long as the store
  uint32_t id = 0;
  uint32_t request = 0;
  uint16_t object = 0;  // in BtfPlan::modules
};

struct BtfPlan {
  std::vector<std::string> modules;  // of the objects; empty: the core kernel
  std::vector<BtfName> names;        // ascending by request
  // The requests that cannot be served, by number.
  absl::flat_hash_map<uint32_t, Refusal> refusals;
  std::vector<std::string> notes;  // BTF left out and why, for people
};

inline bool IsBtfForm(const Request& request) {
  return request.form() == Request::Form::kBtfId ||
         request.form() == Request::Form::kTakes;
}

// Why `module`, or the core kernel if it is empty, has no BTF. Only after the
// store said so.
Refusal ExplainNoBtf(std::string_view module, BtfStore* store, Arena* text);

// True if a parameter of `func` is what a request of the form kTakes wants.
bool TakesStruct(const Btf& btf, const BtfFunc& func, const Request& request);

// Reads the BTF of those objects that the requests name; for kTakes of all.
BtfPlan PlanBtf(absl::Span<const Request> requests, BtfStore* store,
                Arena* text);

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_BTF_PLAN_H_
