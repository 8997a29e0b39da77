#include "lib/attach/linking/name_retry.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace ksweep {
namespace {

bool AttachesByName(Kind kind) {
  return kind == Kind::kKprobeMulti || kind == Kind::kKretprobeMulti ||
         kind == Kind::kKprobeSession;
}

// True if `request` finds every function of a name that comes before one of
// `module`'s.
bool FindsAllOfName(const Request& request, std::string_view module) {
  const bool by_name = request.form() == Request::Form::kExact ||
                       request.form() == Request::Form::kGlob;
  const bool all_owners =
      request.owner().is_any() || (module.empty() && request.owner().is_core());
  return by_name && all_owners;
}

template <typename Function>
bool IsAnother(const Function& function, const Target& target) {
  return function.name == target.name && function.addr != target.addr &&
         (target.module.empty() ? function.module.empty() : true);
}

}  // namespace

bool CanRetryByName(const Resolution& resolution, const Target& target,
                    Kind kind, int err) {
  if (!AttachesByName(kind) || resolution.by_name()) return false;
  // A bad address: EINVAL up to Linux 6.12, ENOENT from 6.18 on.
  if (err != EINVAL && err != ENOENT) return false;
  const bool known = std::any_of(
      target.requests.begin(), target.requests.end(), [&](uint32_t request) {
        return FindsAllOfName(resolution.requests()[request], target.module);
      });
  const auto is_another = [&target](const auto& function) {
    return IsAnother(function, target);
  };
  return known &&
         std::none_of(resolution.targets().begin(), resolution.targets().end(),
                      is_another) &&
         std::none_of(resolution.omissions().begin(),
                      resolution.omissions().end(), is_another);
}

}  // namespace ksweep
