// What is not to be attached although it matches.

#ifndef KSWEEP_LIB_RESOLVE_DENY_H_
#define KSWEEP_LIB_RESOLVE_DENY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ksweep/resolve.h"
#include "lib/base/glob_set.h"
#include "lib/resolve/sweep.h"

namespace ksweep {

// The deny requests and the default deny list, judged by function: a deny that
// matches one name denies the code under all of its names.
class DenySet {
 public:
  // `requests` and `default_list` are only referred to.
  DenySet(absl::Span<const Request> requests,
          absl::Span<const DefaultDeny> default_list);

  // The lowest deny request that matches the function.
  std::optional<uint32_t> FindRequest(absl::Span<const SymbolRow> names,
                                      std::string_view module) const;
  // The entry of the default list that does.
  const DefaultDeny* FindDefault(absl::Span<const SymbolRow> names) const;

 private:
  struct DeniedAddress {
    uint64_t addr;
    uint32_t request;
  };

  void AddRequest(uint32_t index);
  void MatchName(std::string_view name, std::string_view module,
                 uint32_t* lowest) const;

  absl::Span<const Request> requests_;
  absl::Span<const DefaultDeny> default_list_;
  // Names, also of system calls with each prefix.
  absl::flat_hash_map<std::string, std::vector<uint32_t>> names_;
  GlobSet globs_;
  std::vector<uint32_t> glob_requests_;
  std::vector<uint32_t> predicates_;
  std::vector<DeniedAddress> addresses_;
  GlobSet default_globs_;
  bool has_requests_ = false;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_DENY_H_
