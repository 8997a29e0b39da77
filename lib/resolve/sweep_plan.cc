#include "lib/resolve/sweep_plan.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace ksweep {
namespace {

constexpr std::array<std::string_view, kMarkerCnt> kMarkerNames = {
    "_stext",     "_etext",     "__init_begin",
    "__init_end", "_sinittext", "_einittext",
};

// System calls that every kernel has, to learn the prefix from.
constexpr std::array<std::string_view, 2> kProbeSyscalls = {"getpid", "read"};

}  // namespace

// Names on their way into the set, each with the use it has.
struct SweepPlan::NameList {
  std::vector<std::string_view> names;
  std::vector<uint32_t> uses;
  std::deque<std::string> made_up;  // keeps names that are not a request's

  void Add(std::string_view name, uint32_t use) {
    names.push_back(name);
    uses.push_back(use);
  }
  void AddMadeUp(std::string name, uint32_t use) {
    made_up.push_back(std::move(name));
    Add(made_up.back(), use);
  }
};

SweepPlan::SweepPlan(absl::Span<const Request> requests) : requests_(requests) {
  NameList list;
  list.names.reserve(requests.size() + kMarkerCnt);
  list.uses.reserve(requests.size() + kMarkerCnt);
  for (uint32_t i = 0; i < requests.size(); ++i) {
    if (!requests[i].deny()) AddRequest(i, &list);
  }
  const auto other = [this](NameUse use) {
    other_uses_.push_back(use);
    return kOther | static_cast<uint32_t>(other_uses_.size() - 1);
  };
  const bool has_syscalls = !other_uses_.empty();
  for (uint8_t p = 0; has_syscalls && p < kSyscallPrefixes.size(); ++p) {
    for (std::string_view name : kProbeSyscalls) {
      list.AddMadeUp(std::string(kSyscallPrefixes[p]) + std::string(name),
                     other({NameUse::What::kSyscallProbe, p, 0}));
    }
  }
  for (uint8_t m = 0; m < kMarkerCnt; ++m) {
    list.Add(kMarkerNames[m], other({NameUse::What::kMarker, m, 0}));
  }

  std::vector<uint32_t> ids;
  names_ = NameSet(list.names, &ids);
  AddUses(ids, names_.size(), std::move(list.uses));
  std::sort(addresses_.begin(), addresses_.end(),
            [](const AddressRef& a, const AddressRef& b) {
              return a.addr != b.addr ? a.addr < b.addr : a.request < b.request;
            });
  std::vector<uint64_t> starts;
  for (const AddressRef& ref : addresses_) {
    for (uint64_t back = 0; back <= kMaxLocationOffset; ++back) {
      if (ref.addr > back) starts.push_back(ref.addr - back);
    }
  }
  if (!starts.empty()) starts_ = AddressSet(std::move(starts));
}

void SweepPlan::AddRequest(uint32_t index, NameList* list) {
  const Request& request = requests_[index];
  only_exact_ &= request.form() == Request::Form::kExact;
  switch (request.form()) {
    case Request::Form::kExact:
      list->Add(request.name(), index);
      ++exact_cnt_;
      break;
    case Request::Form::kSyscall:
      for (uint8_t p = 0; p < kSyscallPrefixes.size(); ++p) {
        other_uses_.push_back({NameUse::What::kSyscall, p, index});
        list->AddMadeUp(std::string(kSyscallPrefixes[p]) + request.name(),
                        kOther | static_cast<uint32_t>(other_uses_.size() - 1));
      }
      break;
    case Request::Form::kGlob:
      AddGlob(index);
      break;
    case Request::Form::kPredicate:
      predicates_.push_back(index);
      break;
    case Request::Form::kAddress:
      addresses_.push_back({request.addr(), index});
      break;
    case Request::Form::kBtfId:
    case Request::Form::kTakes:
      break;
  }
}

void SweepPlan::AddGlob(uint32_t index) {
  const Request& request = requests_[index];
  if (!request.owner().is_module()) {
    core_globs_.Add(request.name());
    core_glob_requests_.push_back(index);
  }
  if (!request.owner().is_core()) {
    module_globs_.Add(request.name());
    module_glob_requests_.push_back(index);
  }
}

void SweepPlan::AddUses(const std::vector<uint32_t>& ids, uint32_t name_cnt,
                        std::vector<uint32_t> uses) {
  if (name_cnt == ids.size()) {
    // No name twice: ids are the order they were given in.
    uses_ = std::move(uses);
    return;
  }
  use_begins_.assign(name_cnt + 1, 0);
  for (uint32_t id : ids) ++use_begins_[id + 1];
  for (uint32_t i = 0; i < name_cnt; ++i) {
    use_begins_[i + 1] += use_begins_[i];
  }
  uses_.resize(ids.size());
  std::vector<uint32_t> next(use_begins_.begin(), use_begins_.end() - 1);
  for (size_t i = 0; i < ids.size(); ++i) uses_[next[ids[i]]++] = uses[i];
}

absl::Span<const SweepPlan::AddressRef> SweepPlan::AddressesNear(
    uint64_t addr) const {
  const auto first = std::lower_bound(
      addresses_.begin(), addresses_.end(), addr,
      [](const AddressRef& ref, uint64_t value) { return ref.addr < value; });
  auto last = first;
  while (last != addresses_.end() && last->addr - addr <= kMaxLocationOffset) {
    ++last;
  }
  return absl::MakeConstSpan(addresses_)
      .subspan(static_cast<size_t>(first - addresses_.begin()),
               static_cast<size_t>(last - first));
}

size_t SweepPlan::bytes() const {
  return names_.bytes() + uses_.capacity() * sizeof(uint32_t) +
         use_begins_.capacity() * sizeof(uint32_t) +
         other_uses_.capacity() * sizeof(NameUse);
}

}  // namespace ksweep
