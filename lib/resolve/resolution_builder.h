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
      : data_(std::make_shared<Resolution::Data>()),
        text_(std::make_shared<Arena>()) {
    data_->text = text_;
    data_->requests = std::move(requests);
    data_->kinds = kinds;
    for (const Request& request : data_->requests) {
      data_->has_cookies |= request.cookie().has_value();
    }
  }

  // Where the views and spans of what is added have to lie.
  Arena& text() { return *text_; }
  const std::vector<Request>& requests() const { return data_->requests; }

  std::vector<Target>& targets() { return data_->targets; }
  std::vector<Omission>& omissions() { return data_->omissions; }
  std::vector<Unmatched>& unmatched() { return data_->unmatched; }
  ResolveStats& stats() { return data_->stats; }
  void set_by_name(bool by_name) { data_->by_name = by_name; }

  Resolution Build() && { return Resolution(std::move(data_)); }

 private:
  std::shared_ptr<Resolution::Data> data_;
  std::shared_ptr<Arena> text_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_RESOLUTION_BUILDER_H_
