#include "lib/resolve/deny.h"

#include <algorithm>

#include "lib/resolve/symbol_name.h"

namespace ksweep {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

}  // namespace

DenySet::DenySet(absl::Span<const Request> requests,
                 absl::Span<const DefaultDeny> default_list)
    : requests_(requests), default_list_(default_list) {
  for (uint32_t i = 0; i < requests.size(); ++i) {
    if (requests[i].deny()) AddRequest(i);
  }
  for (const DefaultDeny& entry : default_list) {
    default_globs_.Add(entry.pattern);
  }
}

void DenySet::AddRequest(uint32_t index) {
  has_requests_ = true;
  const Request& request = requests_[index];
  switch (request.form()) {
    case Request::Form::kExact:
      names_[request.name()].push_back(index);
      break;
    case Request::Form::kSyscall:
      for (std::string_view prefix : kSyscallPrefixes) {
        names_[std::string(prefix) + request.name()].push_back(index);
      }
      break;
    case Request::Form::kGlob:
      globs_.Add(request.name());
      glob_requests_.push_back(index);
      break;
    case Request::Form::kPredicate:
      predicates_.push_back(index);
      break;
    case Request::Form::kAddress:
      addresses_.push_back({request.addr(), index});
      break;
    case Request::Form::kBtfId:
    case Request::Form::kTakes:
      break;  // refused before
  }
}

void DenySet::MatchName(std::string_view name, std::string_view module,
                        uint32_t* lowest) const {
  const auto consider = [&](uint32_t index) {
    if (requests_[index].owner().Matches(module)) {
      *lowest = std::min(*lowest, index);
    }
  };
  if (!names_.empty()) {
    const auto found = names_.find(std::string(name));
    if (found != names_.end()) {
      std::for_each(found->second.begin(), found->second.end(), consider);
    }
  }
  globs_.ForEachMatch(name, [&](uint32_t glob) {
    consider(glob_requests_[glob]);
    return true;
  });
}

std::optional<uint32_t> DenySet::FindRequest(absl::Span<const SymbolRow> names,
                                             std::string_view module) const {
  if (!has_requests_) return std::nullopt;
  uint32_t lowest = kNone;
  for (const SymbolRow& row : names) {
    MatchName(row.name(), module, &lowest);
    const std::string_view base = StripLlvm(row.name());
    if (base.size() != row.name().size()) MatchName(base, module, &lowest);
    for (uint32_t index : predicates_) {
      const Request& request = requests_[index];
      const Symbol symbol = {row.addr, row.type, row.name(), module};
      if (request.owner().Matches(module) && request.predicate()(symbol)) {
        lowest = std::min(lowest, index);
      }
    }
  }
  // Where ftrace hooks in is not known yet; what could be it counts as denied.
  for (const DeniedAddress& denied : addresses_) {
    const uint64_t start = names[0].addr;
    if (start != 0 && denied.addr >= start &&
        denied.addr - start <= SweepPlan::kMaxLocationOffset) {
      lowest = std::min(lowest, denied.request);
    }
  }
  if (lowest == kNone) return std::nullopt;
  return lowest;
}

const DefaultDeny* DenySet::FindDefault(
    absl::Span<const SymbolRow> names) const {
  uint32_t lowest = kNone;
  for (const SymbolRow& row : names) {
    default_globs_.ForEachMatch(row.name(), [&lowest](uint32_t index) {
      lowest = std::min(lowest, index);
      return true;
    });
  }
  return lowest == kNone ? nullptr : &default_list_[lowest];
}

}  // namespace ksweep
