// The requests, made ready to be searched for each symbol.

#ifndef KSWEEP_LIB_RESOLVE_SWEEP_PLAN_H_
#define KSWEEP_LIB_RESOLVE_SWEEP_PLAN_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ksweep/request.h"
#include "lib/base/glob_set.h"
#include "lib/base/name_set.h"
#include "lib/resolve/address_set.h"
#include "lib/resolve/btf_plan.h"

namespace ksweep {

// Symbols of the core kernel that say where its sections are.
enum class Marker : uint8_t {
  kStext,
  kEtext,
  kInitBegin,
  kInitEnd,
  kSinittext,
  kEinittext,
};
inline constexpr int kMarkerCnt = 6;

// What the entry points of system calls are called, the preferred first: on
// x86-64 all of __x64_, __ia32_ and sys_ can be there.
inline constexpr std::array<std::string_view, 9> kSyscallPrefixes = {
    "__x64_sys_",   "__arm64_sys_",   "__s390x_sys_",
    "__riscv_sys_", "__powerpc_sys_", "__loongarch_sys_",
    "__ia32_sys_",  "SyS_",           "sys_",
};

// Why a name is in the set.
struct NameUse {
  enum class What : uint8_t { kExact, kSyscall, kSyscallProbe, kMarker, kBtf };
  What what = What::kExact;
  uint8_t detail = 0;    // the prefix, or the marker
  uint16_t object = 0;   // of kBtf: in BtfPlan::modules
  uint32_t request = 0;  // of kExact, kSyscall and kBtf
};

// Immutable once made; refers to the requests it was made of.
class SweepPlan {
 public:
  struct AddressRef {
    uint64_t addr;
    uint32_t request;
  };

  // An ftrace location is at most this far behind the function's start.
  static constexpr uint64_t kMaxLocationOffset = 8;

  // Invalid requests have been refused before; denies are skipped. `btf` has
  // what BTF requests ask for, and outlives this.
  explicit SweepPlan(absl::Span<const Request> requests,
                     const BtfPlan* btf = nullptr);

  absl::Span<const Request> requests() const { return requests_; }
  const NameSet& names() const { return names_; }

  // Calls visit(NameUse) for each use of the name found.
  template <typename Visit>
  void ForEachUse(const NameSet::Hit& hit, Visit visit) const {
    visit(UseAt(hit.id));
    if (!hit.repeated) return;
    for (const NameSet::Repeat& extra : ExtraUses(hit.id)) {
      visit(UseAt(extra.place));
    }
  }
  // The only use of the name found, if that is an exact request.
  bool IsOneRequest(const NameSet::Hit& hit) const {
    return hit.id < exact_cnt_ && !hit.repeated;
  }
  uint32_t ExactRequest(uint32_t id) const {
    return exact_requests_.empty() ? id : exact_requests_[id];
  }

  // For a use of the kind kBtf: whether `module` is the owner it is about.
  bool IsOfModule(const NameUse& use, std::string_view module) const {
    return btf_->modules[use.object] == module;
  }

  // Globs whose owner can be the core kernel, or a module. The request of glob
  // i is core_glob_requests()[i].
  const GlobSet& core_globs() const { return core_globs_; }
  const GlobSet& module_globs() const { return module_globs_; }
  absl::Span<const uint32_t> core_glob_requests() const {
    return core_glob_requests_;
  }
  absl::Span<const uint32_t> module_glob_requests() const {
    return module_glob_requests_;
  }

  absl::Span<const uint32_t> predicates() const { return predicates_; }

  // Possible starts of what the address requests ask for.
  const AddressSet& starts() const { return starts_; }
  // The address requests that a function starting at `addr` could serve.
  absl::Span<const AddressRef> AddressesNear(uint64_t addr) const;

  // True if only exact names are asked for, so that a sweep can end once each
  // was seen.
  bool only_exact() const { return only_exact_; }
  uint32_t exact_cnt() const { return exact_cnt_; }
  // True if it matters which suffixes of the compiler a name was given.
  bool wants_suffixes() const { return exact_cnt_ != 0 || has_btf_ids_; }
  // Different names of exact requests. Their ids are below exact_cnt().
  uint32_t exact_name_cnt() const { return exact_name_cnt_; }
  // True if no request cares who owns a symbol.
  bool any_owner() const { return any_owner_; }

  // Bytes held, the one copy of the names included.
  size_t bytes() const;

 private:
  void AddRequest(uint32_t index);
  void AddExact(uint32_t index);
  void AddGlob(uint32_t index);
  void AddSyscall(uint32_t index);
  void AddOtherName(std::string name, NameUse use);
  void AddOtherNames();
  void AddBtfNames();
  void MakeNames();
  void SortAddresses();

  // Uses are numbered, and with them names: first those of exact requests.
  std::string_view NameAt(uint32_t use) const;
  NameUse UseAt(uint32_t use) const {
    if (use >= exact_cnt_) return other_uses_[use - exact_cnt_];
    return {NameUse::What::kExact, 0, 0, ExactRequest(use)};
  }
  absl::Span<const NameSet::Repeat> ExtraUses(uint32_t id) const;

  absl::Span<const Request> requests_;
  const BtfPlan* const btf_;
  NameSet names_;
  // Tens of thousands of names have no memory to spare: what usually is the
  // same number is not kept.
  std::vector<uint32_t> exact_requests_;  // empty: the first ones
  std::vector<NameUse> other_uses_;
  std::vector<std::string> other_names_;
  std::vector<NameSet::Repeat> extra_uses_;  // ascending
  GlobSet core_globs_;
  GlobSet module_globs_;
  std::vector<uint32_t> core_glob_requests_;
  std::vector<uint32_t> module_glob_requests_;
  std::vector<uint32_t> predicates_;
  std::vector<AddressRef> addresses_;
  AddressSet starts_;
  uint32_t exact_cnt_ = 0;
  uint32_t exact_name_cnt_ = 0;
  size_t name_bytes_ = 0;
  bool only_exact_ = true;
  bool any_owner_ = true;
  bool has_btf_ids_ = false;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_RESOLVE_SWEEP_PLAN_H_
