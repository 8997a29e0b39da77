#ifndef KSWEEP_LIB_RESOLVE_RESOLUTION_BUILDER_H_
#define KSWEEP_LIB_RESOLVE_RESOLUTION_BUILDER_H_

#include <memory>
#include <utility>
#include <vector>

#include "ksweep/resolve.h"
#include "lib/base/arena.h"

namespace ksweep {

// The only one that fills a Resolution. What goes in is in final order.
class ResolutionBuilder {
 public:
  ResolutionBuilder(std::vector<Request> requests, KindSet kinds)
      : text_(std::make_shared<Arena>()) {
    resolution_.requests_ = std::move(requests);
    resolution_.kinds_ = kinds;
    for (const Request& request : resolution_.requests_) {
      resolution_.has_cookies_ |= request.cookie().has_value();
    }
  }

  // Where the views and spans of what is added have to lie.
  Arena& text() { return *text_; }
  const std::vector<Request>& requests() const { return resolution_.requests_; }

  std::vector<Target>& targets() { return resolution_.targets_; }
  std::vector<Omission>& omissions() { return resolution_.omissions_; }
  std::vector<Unmatched>& unmatched() { return resolution_.unmatched_; }
  ResolveStats& stats() { return resolution_.stats_; }
  void set_by_name(bool by_name) { resolution_.by_name_ = by_name; }

  Resolution Build() && {
    resolution_.text_ = std::move(text_);
    return std::move(resolution_);
  }

 private:
  std::shared_ptr<Arena> text_;
  Resolution resolution_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_RESOLUTION_BUILDER_H_
