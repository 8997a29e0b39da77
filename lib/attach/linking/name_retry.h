// Functions that the kernel refuses by address and may accept by name.

#ifndef KSWEEP_LIB_ATTACH_LINKING_NAME_RETRY_H_
#define KSWEEP_LIB_ATTACH_LINKING_NAME_RETRY_H_

#include "ksweep/kind.h"
#include "ksweep/resolve.h"

namespace ksweep {

// Whether a retry by name can help and can do no harm for `target`, refused
// with `err`: the kind attaches by name, the errno may mean a stale address, as
// of a module that was loaded again meanwhile, and the kernel, which takes the
// first function of a name and the core's before modules', can only take this
// one. What else has the name is known only if a request by name asked for it.
// O(targets + omissions).
bool CanRetryByName(const Resolution& resolution, const Target& target,
                    Kind kind, int err);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_LINKING_NAME_RETRY_H_
