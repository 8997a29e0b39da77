#include "lib/resolve/symbol_matcher.h"

#include <algorithm>

#include "lib/resolve/symbol_name.h"
#include "lib/source/kallsyms.h"

namespace ksweep {

SymbolMatcher::SymbolMatcher(const SweepPlan& plan, bool stop_early,
                             SweepResult* result)
    : plan_(plan),
      result_(result),
      has_addresses_(!plan.starts().empty()),
      stop_early_(stop_early && plan.only_exact()) {
  result_->seen.resize(plan.requests().size());
  if (!stop_early_) return;
  seen_ids_.resize(plan.exact_cnt());
  unseen_ = plan.exact_name_cnt();
}

bool SymbolMatcher::Match(const Symbol& symbol, const NameSet::Hit& hit,
                          bool dotted, bool pseudo_owner) {
  matched_.clear();
  soft_.clear();
  if (!IsFunctionType(symbol.type) || IsNeverTarget(symbol.name, dotted) ||
      pseudo_owner) {
    NoteOther(symbol, hit);
    return false;
  }
  if (hit.id != NameSet::kNone) MatchName(symbol, hit);
  if (dotted) MatchSuffixes(symbol);
  MatchGlobs(symbol, symbol.name);
  if (!plan_.predicates().empty()) MatchPredicates(symbol);
  if (has_addresses_) MatchAddress(symbol);
  if (matched_.size() > 1) {
    std::sort(matched_.begin(), matched_.end());
    matched_.erase(std::unique(matched_.begin(), matched_.end()),
                   matched_.end());
  }
  return !matched_.empty() || !soft_.empty();
}

void SymbolMatcher::MatchName(const Symbol& symbol, const NameSet::Hit& hit) {
  NoteSeen(hit.id);
  plan_.ForEachUse(hit, [this, &symbol](const NameUse& use) {
    const bool core = symbol.module.empty();
    switch (use.what) {
      case NameUse::What::kExact:
        if (!Looks(use.request, symbol.module)) return;
        matched_.push_back(use.request);
        result_->seen[use.request].exact = true;
        break;
      case NameUse::What::kSyscall:
        if (!core) return;
        result_->syscall_prefixes |= 1u << use.detail;
        soft_.push_back({0, use.request, SoftMatch::How::kSyscall, use.detail});
        break;
      case NameUse::What::kSyscallProbe:
        if (core) result_->syscall_prefixes |= 1u << use.detail;
        break;
      case NameUse::What::kMarker:
        NoteMarker(symbol, use.detail);
        break;
      case NameUse::What::kBtf:
        if (plan_.IsOfModule(use, symbol.module)) {
          matched_.push_back(use.request);
        }
        break;
    }
  });
}

void SymbolMatcher::MatchSuffixes(const Symbol& symbol) {
  std::string_view base = StripLlvm(symbol.name);
  if (base.size() != symbol.name.size()) {
    AddSoft(symbol, base, SoftMatch::How::kLlvm);
    MatchGlobs(symbol, base);
  }
  while (StripCloneSuffix(&base)) {
    AddSoft(symbol, base, SoftMatch::How::kClone);
  }
}

void SymbolMatcher::AddSoft(const Symbol& symbol, std::string_view base,
                            SoftMatch::How how) {
  const NameSet::Hit hit = plan_.names().Find(base);
  if (hit.id == NameSet::kNone) return;
  plan_.ForEachUse(hit, [this, &symbol, how](const NameUse& use) {
    if (use.what == NameUse::What::kExact &&
        Looks(use.request, symbol.module)) {
      soft_.push_back({0, use.request, how, 0});
    } else if (use.what == NameUse::What::kBtf &&
               how == SoftMatch::How::kClone && IsByBtfId(use.request) &&
               plan_.IsOfModule(use, symbol.module)) {
      soft_.push_back({0, use.request, SoftMatch::How::kBtfClone, 0});
    }
  });
}

void SymbolMatcher::MatchGlobs(const Symbol& symbol, std::string_view name) {
  const bool core = symbol.module.empty();
  const GlobSet& globs = core ? plan_.core_globs() : plan_.module_globs();
  if (globs.empty()) return;
  const absl::Span<const uint32_t> requests =
      core ? plan_.core_glob_requests() : plan_.module_glob_requests();
  globs.ForEachMatch(name, [this, &symbol, requests](uint32_t glob) {
    if (Looks(requests[glob], symbol.module)) {
      matched_.push_back(requests[glob]);
    }
    return true;
  });
}

void SymbolMatcher::MatchPredicates(const Symbol& symbol) {
  for (uint32_t request : plan_.predicates()) {
    if (Looks(request, symbol.module) &&
        plan_.requests()[request].predicate()(symbol)) {
      matched_.push_back(request);
    }
  }
}

void SymbolMatcher::MatchAddress(const Symbol& symbol) {
  for (const SweepPlan::AddressRef& ref : plan_.AddressesNear(symbol.addr)) {
    if (ref.addr == symbol.addr) {
      matched_.push_back(ref.request);
    } else {
      soft_.push_back({0, ref.request, SoftMatch::How::kNear, 0});
    }
  }
}

void SymbolMatcher::NoteOther(const Symbol& symbol, const NameSet::Hit& hit) {
  if (hit.id != NameSet::kNone) {
    NoteSeen(hit.id);
    plan_.ForEachUse(hit, [this, &symbol](const NameUse& use) {
      if (use.what == NameUse::What::kMarker) {
        NoteMarker(symbol, use.detail);
      } else if ((use.what == NameUse::What::kExact &&
                  Looks(use.request, symbol.module)) ||
                 (use.what == NameUse::What::kBtf &&
                  plan_.IsOfModule(use, symbol.module))) {
        result_->seen[use.request].other = true;
      }
    });
  }
  if (!has_addresses_) return;
  for (const SweepPlan::AddressRef& ref : plan_.AddressesNear(symbol.addr)) {
    if (ref.addr != symbol.addr) continue;
    result_->seen[ref.request].other = true;
    result_->other_at_addr.emplace_back(ref.request,
                                        result_->text.Copy(symbol.name));
  }
}

// Where a section starts, the lowest counts, and where it ends, the highest, so
// that the order of lines does not matter if there are several.
void SymbolMatcher::NoteMarker(const Symbol& symbol, uint8_t marker) {
  if (!symbol.module.empty() || symbol.addr == 0) return;
  uint64_t& noted = result_->markers[marker];
  const bool is_end = marker == static_cast<uint8_t>(Marker::kEtext) ||
                      marker == static_cast<uint8_t>(Marker::kInitEnd) ||
                      marker == static_cast<uint8_t>(Marker::kEinittext);
  const bool better = is_end ? symbol.addr > noted : symbol.addr < noted;
  if (noted == 0 || better) noted = symbol.addr;
}

void SymbolMatcher::NoteSeen(uint32_t id) {
  if (!stop_early_ || id >= seen_ids_.size() || seen_ids_[id]) return;
  seen_ids_[id] = true;
  --unseen_;
}

void SymbolMatcher::AddRow(const Symbol& symbol, uint32_t owner,
                           const char* stored_name) {
  SymbolRow row;
  row.addr = symbol.addr;
  row.name_data = stored_name != nullptr
                      ? stored_name
                      : result_->text.Copy(symbol.name).data();
  row.name_len = static_cast<uint32_t>(symbol.name.size());
  row.requests = matched_.size() == 1 ? RequestSets::Single(matched_[0])
                                      : result_->sets.Intern(matched_);
  row.owner = owner;
  row.type = symbol.type;
  row.plain = !matched_.empty();
  for (SoftMatch soft : soft_) {
    soft.row = static_cast<uint32_t>(result_->rows.size());
    result_->soft.push_back(soft);
  }
  result_->rows.push_back(row);
}

void SymbolMatcher::AddAlias(const Symbol& symbol, uint32_t owner) {
  if (!IsFunctionType(symbol.type) || IsNeverTarget(symbol.name)) return;
  matched_.clear();
  soft_.clear();
  AddRow(symbol, owner, nullptr);
}

void SymbolMatcher::AddPlainRow(const Symbol& symbol, uint32_t owner,
                                const NameSet::Hit& hit) {
  const uint32_t request = plan_.ExactRequest(hit.id);
  NoteSeen(hit.id);
  result_->seen[request].exact = true;
  SymbolRow row;
  row.addr = symbol.addr;
  row.name_data = hit.name;
  row.name_len = static_cast<uint32_t>(symbol.name.size());
  row.requests = RequestSets::Single(request);
  row.owner = owner;
  row.type = symbol.type;
  row.plain = true;
  result_->rows.push_back(row);
}

}  // namespace ksweep
