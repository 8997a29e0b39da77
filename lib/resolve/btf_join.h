// BTF joined to the candidates: which FUNC each of them is.

#ifndef KSWEEP_LIB_RESOLVE_BTF_JOIN_H_
#define KSWEEP_LIB_RESOLVE_BTF_JOIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ksweep/resolve.h"
#include "lib/base/arena.h"
#include "lib/resolve/candidates.h"
#include "lib/resolve/refusal.h"
#include "lib/resolve/sweep.h"
#include "lib/source/btf_store.h"
#include "lib/source/list_file.h"

namespace ksweep {

struct BtfMatch {
  uint32_t id = 0;  // 0: none of its names is a FUNC's
  // Functions of the FUNC's name and owner. The kernel goes from the id to the
  // name to the first address, so with several it may take another.
  uint32_t instances = 0;
  uint64_t first_addr = 0;  // the lowest of these; 0 if not known
  BtfPrototype prototype;
};

struct BtfMatches {
  std::vector<BtfMatch> list;  // see Candidate::btf_match
  // Owners without BTF, by number.
  absl::flat_hash_map<uint32_t, Refusal> no_btf;
  std::vector<std::string> notes;
};

struct BtfJoinInput {
  absl::Span<const Request> requests;
  KindSet kinds;
  TraceLimits limits;
  BtfStore* store;
  ListFile* kallsyms;  // for the rare further pass
  Arena* text;
};

// Sets Candidate::btf_match, of every candidate that may be traceable if a kind
// needs BTF, and of those that a BTF request found. Opens the BTF of their
// owners and no other. Fails only if kallsyms has to be read again and cannot.
absl::Status JoinBtf(const BtfJoinInput& input, const SweepResult& sweep,
                     Candidates* candidates, BtfMatches* matches);

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_BTF_JOIN_H_
