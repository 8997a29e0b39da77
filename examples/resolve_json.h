// A resolution as JSON.

#ifndef KSWEEP_EXAMPLES_RESOLVE_JSON_H_
#define KSWEEP_EXAMPLES_RESOLVE_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "ksweep/resolve.h"

namespace examples {

// One object:
//
//   targets    [{name, module, addr, type, clone, btf_id, aliases, cookie,
//                requests, untested, kinds, misfits [{kind, reason, detail}]}]
//   omissions  [{name, module, addr, reason, detail, request}]
//   unmatched  [{request, reason, detail, candidates}]
//   stats      {addresses, filter_list, blacklist, lines, malformed,
//               malformed_lines, opens {file: n},
//               unjoined [{name, module, location}], notes,
//               read_ns, match_ns, join_ns, btf_ns, total_ns}
//   error      the message, only if `status` is not Ok
//
// A module is null for the core kernel, an address null if it is not known, a
// BTF id null if there is none. Requests are their texts.
std::string ResolutionJson(const ksweep::Resolution& resolution,
                           const absl::Status& status);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_RESOLVE_JSON_H_
