// What becomes of an attach when the kernel refuses functions.

#ifndef KSWEEP_LIB_ATTACH_LINKING_REFUSALS_H_
#define KSWEEP_LIB_ATTACH_LINKING_REFUSALS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ksweep/attach.h"

namespace ksweep {

// Collects refused functions, and fails as AttachOptions::on_refused says.
class Refusals {
 public:
  // Both have to outlive it. Functions are `total` in all.
  Refusals(const AttachOptions& options, size_t total)
      : options_(options), total_(total) {}

  // An error if the whole attach is to end here. `untested`: no list said that
  // the kernel accepts it.
  absl::Status Add(RefusedFunction refused, bool untested);

  // At the end: an error under OnRefused::kFail with any refused.
  absl::Status Check() const;

  // By slot.
  std::vector<RefusedFunction> Take() &&;

 private:
  absl::Status CheckCnt() const;
  absl::Status Error(std::string_view remedy) const;
  std::string Names() const;

  const AttachOptions& options_;
  const size_t total_;
  std::vector<RefusedFunction> refused_;
  size_t untested_cnt_ = 0;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LINKING_REFUSALS_H_
