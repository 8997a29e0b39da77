#ifndef KSWEEP_LIB_RESOLVE_REQUEST_SETS_H_
#define KSWEEP_LIB_RESOLVE_REQUEST_SETS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace ksweep {

// Indices of requests, ascending.
using RequestIndices = absl::InlinedVector<uint32_t, 4>;

// Sets of requests as small numbers: tens of thousands of symbols match the
// same few sets, or one request each. A set of one request is that request's
// index, and takes no memory.
class RequestSets {
 public:
  static constexpr uint32_t kEmpty = 1u << 31;

  RequestSets() : spans_(1) {}

  static uint32_t Single(uint32_t request) { return request; }

  // The set's number. `requests` is ascending, without repetition.
  uint32_t Intern(const RequestIndices& requests) {
    if (requests.empty()) return kEmpty;
    if (requests.size() == 1) return Single(requests[0]);
    const absl::Span<const uint32_t> last = Get(last_);
    if (std::equal(requests.begin(), requests.end(), last.begin(),
                   last.end())) {
      return last_;
    }
    const auto [it, is_new] = numbers_.try_emplace(
        requests, kEmpty | static_cast<uint32_t>(spans_.size()));
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
    const absl::Span<const uint32_t> in_a = Get(a), in_b = Get(b);
    RequestIndices both;
    std::set_union(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(),
                   std::back_inserter(both));
    return Intern(both);
  }

  uint32_t With(uint32_t set, uint32_t request) {
    return Union(set, Single(request));
  }

  // May be a view of `set` itself.
  absl::Span<const uint32_t> Get(const uint32_t& set) const {
    if ((set & kEmpty) == 0) return {&set, 1};
    const Piece& piece = spans_[set & ~kEmpty];
    return {pool_.data() + piece.begin, piece.cnt};
  }
  void Get(uint32_t&&) const = delete;

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
