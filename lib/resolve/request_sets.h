#ifndef KSWEEP_LIB_RESOLVE_REQUEST_SETS_H_
#define KSWEEP_LIB_RESOLVE_REQUEST_SETS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace ksweep {

// Indices of requests, ascending.
using RequestIndices = absl::InlinedVector<uint32_t, 4>;

// Sets of requests as small numbers: tens of thousands of symbols match the
// same few sets.
class RequestSets {
 public:
  static constexpr uint32_t kEmpty = 0;

  RequestSets() : spans_(1) {}

  // The set's number. `requests` is ascending, without repetition.
  uint32_t Intern(const RequestIndices& requests) {
    if (requests.empty()) return kEmpty;
    if (std::equal(requests.begin(), requests.end(), Get(last_).begin(),
                   Get(last_).end())) {
      return last_;
    }
    const auto [it, is_new] =
        numbers_.try_emplace(requests, static_cast<uint32_t>(spans_.size()));
    if (is_new) {
      spans_.push_back({static_cast<uint32_t>(pool_.size()),
                        static_cast<uint32_t>(requests.size())});
      pool_.insert(pool_.end(), requests.begin(), requests.end());
    }
    last_ = it->second;
    return last_;
  }

  uint32_t Union(uint32_t a, uint32_t b) {
    if (a == b || b == kEmpty) return a;
    if (a == kEmpty) return b;
    RequestIndices both;
    std::set_union(Get(a).begin(), Get(a).end(), Get(b).begin(), Get(b).end(),
                   std::back_inserter(both));
    return Intern(both);
  }

  uint32_t With(uint32_t set, uint32_t request) {
    return Union(set, Intern({request}));
  }

  absl::Span<const uint32_t> Get(uint32_t set) const {
    return {pool_.data() + spans_[set].begin, spans_[set].cnt};
  }

 private:
  struct Piece {
    uint32_t begin = 0;
    uint32_t cnt = 0;
  };

  std::vector<uint32_t> pool_;
  std::vector<Piece> spans_;
  absl::flat_hash_map<RequestIndices, uint32_t> numbers_;
  uint32_t last_ = kEmpty;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_REQUEST_SETS_H_
