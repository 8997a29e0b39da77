#include "lib/resolve/sweep_plan.h"

#include <algorithm>
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

SweepPlan::SweepPlan(absl::Span<const Request> requests, const BtfPlan* btf)
    : requests_(requests), btf_(btf) {
  for (uint32_t i = 0; i < requests.size(); ++i) {
    if (!requests[i].deny()) AddRequest(i);
  }
  AddOtherNames();
  if (btf_ != nullptr) AddBtfNames();
  MakeNames();
  SortAddresses();
}

void SweepPlan::AddRequest(uint32_t index) {
  const Request& request = requests_[index];
  only_exact_ &= request.form() == Request::Form::kExact;
  any_owner_ &= request.owner().is_any();
  switch (request.form()) {
    case Request::Form::kExact:
      AddExact(index);
      break;
    case Request::Form::kSyscall:
      AddSyscall(index);
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
      has_btf_ids_ = true;
      break;
    case Request::Form::kTakes:
      break;
  }
}

void SweepPlan::AddExact(uint32_t index) {
  if (index != exact_cnt_ || !exact_requests_.empty()) {
    while (exact_requests_.size() < exact_cnt_) {
      exact_requests_.push_back(static_cast<uint32_t>(exact_requests_.size()));
    }
    exact_requests_.push_back(index);
  }
  ++exact_cnt_;
  name_bytes_ += requests_[index].name().size();
}

void SweepPlan::AddOtherName(std::string name, NameUse use) {
  name_bytes_ += name.size();
  other_names_.push_back(std::move(name));
  other_uses_.push_back(use);
}

void SweepPlan::AddSyscall(uint32_t index) {
  for (uint8_t p = 0; p < kSyscallPrefixes.size(); ++p) {
    AddOtherName(std::string(kSyscallPrefixes[p]) + requests_[index].name(),
                 {NameUse::What::kSyscall, p, 0, index});
  }
}

// What the sweep wants to know beside the requests.
void SweepPlan::AddOtherNames() {
  const bool has_syscalls = !other_names_.empty();
  for (uint8_t p = 0; has_syscalls && p < kSyscallPrefixes.size(); ++p) {
    for (std::string_view name : kProbeSyscalls) {
      AddOtherName(std::string(kSyscallPrefixes[p]) + std::string(name),
                   {NameUse::What::kSyscallProbe, p, 0, 0});
    }
  }
  for (uint8_t m = 0; m < kMarkerCnt; ++m) {
    AddOtherName(std::string(kMarkerNames[m]),
                 {NameUse::What::kMarker, m, 0, 0});
  }
}

void SweepPlan::AddBtfNames() {
  for (const BtfName& name : btf_->names) {
    AddOtherName(std::string(name.name),
                 {NameUse::What::kBtf, 0, name.object, name.request});
  }
}

std::string_view SweepPlan::NameAt(uint32_t use) const {
  if (use >= exact_cnt_) return other_names_[use - exact_cnt_];
  return requests_[ExactRequest(use)].name();
}

void SweepPlan::MakeNames() {
  const uint32_t cnt = exact_cnt_ + static_cast<uint32_t>(other_names_.size());
  names_ = NameSet(cnt, name_bytes_, [this](uint32_t i) { return NameAt(i); });
  other_names_ = {};
  exact_name_cnt_ = exact_cnt_;
  extra_uses_.assign(names_.repeats().begin(), names_.repeats().end());
  for (const NameSet::Repeat& repeat : extra_uses_) {
    exact_name_cnt_ -= repeat.place < exact_cnt_;
  }
  std::sort(extra_uses_.begin(), extra_uses_.end(),
            [](const NameSet::Repeat& a, const NameSet::Repeat& b) {
              return a.id != b.id ? a.id < b.id : a.place < b.place;
            });
}

absl::Span<const NameSet::Repeat> SweepPlan::ExtraUses(uint32_t id) const {
  const auto [first, last] = std::equal_range(
      extra_uses_.begin(), extra_uses_.end(), NameSet::Repeat{id, 0},
      [](const NameSet::Repeat& a, const NameSet::Repeat& b) {
        return a.id < b.id;
      });
  return absl::MakeConstSpan(extra_uses_)
      .subspan(static_cast<size_t>(first - extra_uses_.begin()),
               static_cast<size_t>(last - first));
}

void SweepPlan::SortAddresses() {
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
  return names_.bytes() + exact_requests_.capacity() * sizeof(uint32_t) +
         other_uses_.capacity() * sizeof(NameUse) +
         extra_uses_.capacity() * sizeof(NameSet::Repeat);
}

}  // namespace ksweep
