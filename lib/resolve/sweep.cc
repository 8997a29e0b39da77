#include "lib/resolve/sweep.h"

#include <algorithm>
#include <bit>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "lib/base/hash.h"
#include "lib/resolve/symbol_name.h"
#include "lib/source/kallsyms.h"
#include "lib/source/line_reader.h"

namespace ksweep {
namespace {

constexpr size_t kMaxMalformedLines = 100;
constexpr uint32_t kCore = 0;

uint64_t ToBigEndian(uint64_t word) {
  if constexpr (std::endian::native == std::endian::little) {
    return __builtin_bswap64(word);
  }
  return word;
}

// The 16 digits of an address as one ordered value.
struct AddrText {
  uint64_t high = 0;
  uint64_t low = 0;

  static AddrText Load(const char* p) {
    return {ToBigEndian(LoadU64(p)), ToBigEndian(LoadU64(p + 8))};
  }
  friend bool operator<(const AddrText& a, const AddrText& b) {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
  }
};

bool SameAddrText(const char* a, const char* b) {
  return LoadU64(a) == LoadU64(b) && LoadU64(a + 8) == LoadU64(b + 8);
}

// True if the parts of a line are where a 64-bit kernel puts them.
bool IsCanonical(const char* begin, const char* end) {
  return end - begin > static_cast<ptrdiff_t>(kKsymNameColumn) &&
         begin[kKsymAddrLen] == ' ' && begin[kKsymNameColumn - 1] == ' ' &&
         IsHex16(begin);
}

class Sweeper {
 public:
  Sweeper(const SweepPlan& plan, const SweepOptions& options,
          SweepResult* result);

  // Takes a batch; returns the lines done.
  uint32_t Take(const LineBatch& batch);
  void Finish() { LeaveOwner(); }
  const bool* stop() const { return &stop_; }

 private:
  // What is known of a line before it is looked at closely.
  struct LineMark {
    NameSet::Hit hit;
    bool flagged = false;  // deserves the look
    bool dotted = false;
    bool taken = false;  // has become a row
  };
  // A function of the module under way that no request matched, kept until its
  // module ends because it may be the alias of one that does.
  struct Bystander {
    uint64_t addr;
    uint32_t name_begin;
    uint32_t name_len;
    char type;
  };

  uint32_t EndOfWholeRuns(const LineBatch& batch) const;
  void TakeMixed(const LineBatch& batch, uint32_t cnt);

  // Marking the lines of the core kernel that deserve a closer look.
  void MarkLines(const LineBatch& batch, uint32_t from, uint32_t to);
  void MarkOddLine(const LineBatch& batch, uint32_t i);
  void MarkDotted(const LineBatch& batch, uint32_t cnt);
  bool WantsFunction(const char* begin, std::string_view name) const;
  bool WantsAddress(const char* begin) const;
  void NoteOrder(const char* begin);
  void NoteMalformed(const LineBatch& batch, uint32_t i);

  // Looking at them.
  void TakeMarked(const LineBatch& batch, uint32_t from, uint32_t to);
  uint32_t TakeRun(const LineBatch& batch, uint32_t i, uint32_t from,
                   uint32_t to);
  bool Match(const Symbol& symbol, const NameSet::Hit& hit, bool dotted);
  void MatchName(const Symbol& symbol, const NameSet::Hit& hit);
  void MatchSuffixes(const Symbol& symbol);
  void MatchGlobs(const Symbol& symbol, std::string_view name);
  void MatchPredicates(const Symbol& symbol);
  void MatchAddress(const Symbol& symbol);
  void AddSoft(const Symbol& symbol, std::string_view base, SoftMatch::How how);
  void NoteOther(const Symbol& symbol, const NameSet::Hit& hit);
  void NoteMarker(const Symbol& symbol, uint8_t marker);
  void NoteSeen(uint32_t id);
  void AddRow(const Symbol& symbol, uint32_t owner, const char* stored_name);
  void AddAlias(const Symbol& symbol, uint32_t owner);

  // Modules, a line at a time.
  void TakeModuleLine(const LineBatch& batch, uint32_t i);
  bool WantsModuleFunction(const Symbol& symbol, const LineMark& mark) const;
  void EnterOwner(std::string_view module);
  void LeaveOwner();
  void AddBystander(const Symbol& symbol);

  const Owner& OwnerOf(uint32_t request) const {
    return plan_.requests()[request].owner();
  }

  const SweepPlan& plan_;
  SweepResult* const result_;
  // Whether functions matter whose names are not in the set, and whether all
  // of them do.
  const bool some_functions_;
  const bool every_function_;
  const bool has_addresses_;

  std::vector<LineMark> marks_;
  std::vector<NameSet::Probe> probes_;
  AddrText last_addr_;

  RequestIndices matched_;
  absl::InlinedVector<SoftMatch, 4> soft_;

  absl::flat_hash_map<std::string_view, uint32_t> owner_numbers_;
  uint32_t owner_ = kCore;
  bool pseudo_owner_ = false;
  size_t owner_first_row_ = 0;
  std::vector<Bystander> bystanders_;
  std::string bystander_names_;

  bool stop_early_;
  std::vector<bool> seen_ids_;
  uint32_t unseen_ = 0;
  bool stop_ = false;
};

Sweeper::Sweeper(const SweepPlan& plan, const SweepOptions& options,
                 SweepResult* result)
    : plan_(plan),
      result_(result),
      some_functions_(!plan.core_globs().empty() ||
                      !plan.predicates().empty() || !plan.starts().empty()),
      every_function_(plan.core_globs().has_star() ||
                      !plan.predicates().empty()),
      has_addresses_(!plan.starts().empty()),
      stop_early_(options.stop_early && plan.only_exact()) {
  result_->seen.resize(plan.requests().size());
  result_->owners.push_back("");
  if (!stop_early_) return;
  seen_ids_.resize(plan_.names().size());
  for (uint32_t id = 0; id < plan_.names().size(); ++id) {
    bool exact = false;
    plan_.ForEachUse(id, [&exact](const NameUse& use) {
      exact |= use.what == NameUse::What::kExact;
    });
    seen_ids_[id] = !exact;
    unseen_ += exact;
  }
}

uint32_t Sweeper::Take(const LineBatch& batch) {
  const uint32_t cnt = EndOfWholeRuns(batch);
  result_->lines += cnt;
  marks_.assign(cnt, LineMark());
  MarkDotted(batch, cnt);
  if (batch.has_tab || owner_ != kCore) {
    TakeMixed(batch, cnt);
  } else {
    MarkLines(batch, 0, cnt);
    TakeMarked(batch, 0, cnt);
  }
  stop_ = stop_early_ && unseen_ == 0;
  return cnt;
}

// The lines before the last run of equal addresses: that run may go on in the
// next batch, and is looked at as a whole.
uint32_t Sweeper::EndOfWholeRuns(const LineBatch& batch) const {
  constexpr uint32_t kLongestRun = 4096;
  const uint32_t cnt = batch.cnt();
  const auto canonical = [&batch](uint32_t i) {
    return IsCanonical(batch.begin(i), batch.end(i));
  };
  if (batch.is_last || !canonical(cnt - 1) || IsZero16(batch.begin(cnt - 1))) {
    return cnt;
  }
  uint32_t first = cnt - 1;
  while (first > 0 && canonical(first - 1) &&
         SameAddrText(batch.begin(first - 1), batch.begin(first))) {
    --first;
  }
  if (cnt - first <= kLongestRun) return first;
  // No kernel has such a run.
  result_->disordered = true;
  return cnt;
}

// A batch with symbols of modules. Those of the core before and between them
// are taken a stretch at a time.
void Sweeper::TakeMixed(const LineBatch& batch, uint32_t cnt) {
  uint32_t i = 0;
  while (i < cnt) {
    uint32_t to = i;
    while (to < cnt && batch.line(to).find('\t') == std::string_view::npos) {
      ++to;
    }
    if (to > i) {
      // The kernel lists its own symbols before all others.
      result_->disordered |= owner_ != kCore;
      LeaveOwner();
      MarkLines(batch, i, to);
      TakeMarked(batch, i, to);
    }
    if (to < cnt) TakeModuleLine(batch, to++);
    i = to;
  }
}

bool Sweeper::WantsFunction(const char* begin, std::string_view name) const {
  if (every_function_ || plan_.core_globs().MatchesAny(name)) {
    if (!IsNeverTarget(name)) return true;
  }
  return WantsAddress(begin);
}

bool Sweeper::WantsAddress(const char* begin) const {
  uint64_t addr = 0;
  return has_addresses_ && ParseHex({begin, kKsymAddrLen}, &addr) &&
         plan_.starts().Contains(addr);
}

void Sweeper::NoteOrder(const char* begin) {
  const AddrText addr = AddrText::Load(begin);
  result_->disordered |= addr < last_addr_;
  last_addr_ = addr;
}

void Sweeper::NoteMalformed(const LineBatch& batch, uint32_t i) {
  ++result_->malformed;
  if (result_->malformed_lines.size() < kMaxMalformedLines) {
    result_->malformed_lines.push_back(batch.first_line + i);
  }
}

// The hot loop: what is in here happens once for each symbol of the kernel.
void Sweeper::MarkLines(const LineBatch& batch, uint32_t from, uint32_t to) {
  const NameSet& names = plan_.names();
  if (probes_.size() <= to - from) probes_.resize(to - from + 1);
  size_t probe_cnt = 0;
  uint64_t functions = 0, zeros = 0;
  for (uint32_t i = from; i < to; ++i) {
    const char* const begin = batch.begin(i);
    const char* const end = batch.end(i);
    if (!IsCanonical(begin, end)) [[unlikely]] {
      MarkOddLine(batch, i);
      continue;
    }
    const char* const name = begin + kKsymNameColumn;
    const uint32_t len = static_cast<uint32_t>(end - name);
    const uint64_t hash = HashName(name, len);
    // Written always, kept if the bitmap says so: no branch to mispredict.
    probes_[probe_cnt] = {name, len, i, hash};
    probe_cnt += names.MayContain(hash);
    if (IsFunctionType(begin[kKsymTypeColumn])) {
      ++functions;
      zeros += IsZero16(begin);
      NoteOrder(begin);
      if (some_functions_) {
        marks_[i].flagged |= WantsFunction(begin, {name, len});
      }
    } else if (has_addresses_) {
      marks_[i].flagged |= WantsAddress(begin);
    }
  }
  result_->functions += functions;
  result_->zero_functions += zeros;
  names.FindBatch({probes_.data(), probe_cnt},
                  [this](uint32_t line, const NameSet::Hit& hit) {
                    marks_[line].hit = hit;
                    marks_[line].flagged = true;
                  });
}

// Shorter addresses, as of 32-bit kernels, and what is no symbol at all.
void Sweeper::MarkOddLine(const LineBatch& batch, uint32_t i) {
  Symbol symbol;
  if (!ParseKsymLine(batch.line(i), &symbol)) {
    NoteMalformed(batch, i);
    return;
  }
  // There are no columns to compare, so its order is not known.
  result_->disordered = true;
  marks_[i].hit = plan_.names().Find(symbol.name);
  marks_[i].flagged |= marks_[i].hit.id != NameSet::kNone ||
                       plan_.starts().Contains(symbol.addr);
  if (!IsFunctionType(symbol.type)) return;
  ++result_->functions;
  result_->zero_functions += symbol.addr == 0;
  marks_[i].flagged |=
      every_function_ || plan_.core_globs().MatchesAny(symbol.name);
}

// Names with suffixes of the compiler: what they were made of may be asked for.
void Sweeper::MarkDotted(const LineBatch& batch, uint32_t cnt) {
  for (uint32_t i : batch.dotted) {
    if (i >= cnt) break;
    marks_[i].dotted = true;
    Symbol symbol;
    if (!ParseKsymLine(batch.line(i), &symbol)) continue;
    const std::string_view name = symbol.name;
    // A base can contain dots itself, so every dot is tried.
    for (size_t dot = name.find('.');
         plan_.exact_cnt() != 0 && dot != std::string_view::npos;
         dot = name.find('.', dot + 1)) {
      marks_[i].flagged |=
          plan_.names().Find(name.substr(0, dot)).id != NameSet::kNone;
    }
    const std::string_view base = StripLlvm(name);
    if (base.size() != name.size()) {
      marks_[i].flagged |= plan_.core_globs().MatchesAny(base);
    }
  }
}

void Sweeper::TakeMarked(const LineBatch& batch, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to;) {
    i = marks_[i].flagged ? TakeRun(batch, i, from, to) : i + 1;
  }
}

// Looks at the flagged symbols with the address of line i, the first of them;
// if one matches, the others become its aliases. Returns the line behind them.
uint32_t Sweeper::TakeRun(const LineBatch& batch, uint32_t i, uint32_t from,
                          uint32_t to) {
  const char* const addr = batch.begin(i);
  uint32_t first = i, last = i + 1;
  if (IsCanonical(addr, batch.end(i)) && !IsZero16(addr)) {
    const auto same = [&batch, addr](uint32_t k) {
      return IsCanonical(batch.begin(k), batch.end(k)) &&
             SameAddrText(batch.begin(k), addr);
    };
    while (first > from && same(first - 1)) --first;
    while (last < to && same(last)) ++last;
  }
  Symbol symbol;
  bool any = false;
  for (uint32_t k = i; k < last; ++k) {
    LineMark& mark = marks_[k];
    if (!mark.flagged || !ParseKsymLine(batch.line(k), &symbol)) continue;
    mark.taken = Match(symbol, mark.hit, mark.dotted);
    if (mark.taken) AddRow(symbol, kCore, mark.hit.name);
    any |= mark.taken;
  }
  for (uint32_t k = first; any && k < last; ++k) {
    if (marks_[k].taken || !ParseKsymLine(batch.line(k), &symbol)) continue;
    AddAlias(symbol, kCore);
  }
  return last;
}

// Fills matched_ and soft_. False if both stay empty.
bool Sweeper::Match(const Symbol& symbol, const NameSet::Hit& hit,
                    bool dotted) {
  matched_.clear();
  soft_.clear();
  if (!IsFunctionType(symbol.type) || IsNeverTarget(symbol.name) ||
      pseudo_owner_) {
    NoteOther(symbol, hit);
    return false;
  }
  if (hit.id != NameSet::kNone) MatchName(symbol, hit);
  if (dotted) MatchSuffixes(symbol);
  MatchGlobs(symbol, symbol.name);
  if (!plan_.predicates().empty()) MatchPredicates(symbol);
  if (has_addresses_) MatchAddress(symbol);
  std::sort(matched_.begin(), matched_.end());
  matched_.erase(std::unique(matched_.begin(), matched_.end()), matched_.end());
  return !matched_.empty() || !soft_.empty();
}

void Sweeper::MatchName(const Symbol& symbol, const NameSet::Hit& hit) {
  NoteSeen(hit.id);
  plan_.ForEachUse(hit.id, [this, &symbol](const NameUse& use) {
    const bool core = symbol.module.empty();
    switch (use.what) {
      case NameUse::What::kExact:
        if (!OwnerOf(use.request).Matches(symbol.module)) return;
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
    }
  });
}

void Sweeper::MatchSuffixes(const Symbol& symbol) {
  std::string_view base = StripLlvm(symbol.name);
  if (base.size() != symbol.name.size()) {
    AddSoft(symbol, base, SoftMatch::How::kLlvm);
    MatchGlobs(symbol, base);
  }
  while (StripCloneSuffix(&base)) {
    AddSoft(symbol, base, SoftMatch::How::kClone);
  }
}

void Sweeper::AddSoft(const Symbol& symbol, std::string_view base,
                      SoftMatch::How how) {
  const NameSet::Hit hit = plan_.names().Find(base);
  if (hit.id == NameSet::kNone) return;
  plan_.ForEachUse(hit.id, [this, &symbol, how](const NameUse& use) {
    if (use.what == NameUse::What::kExact &&
        OwnerOf(use.request).Matches(symbol.module)) {
      soft_.push_back({0, use.request, how, 0});
    }
  });
}

void Sweeper::MatchGlobs(const Symbol& symbol, std::string_view name) {
  const bool core = symbol.module.empty();
  const GlobSet& globs = core ? plan_.core_globs() : plan_.module_globs();
  const absl::Span<const uint32_t> requests =
      core ? plan_.core_glob_requests() : plan_.module_glob_requests();
  globs.ForEachMatch(name, [this, &symbol, requests](uint32_t glob) {
    if (OwnerOf(requests[glob]).Matches(symbol.module)) {
      matched_.push_back(requests[glob]);
    }
    return true;
  });
}

void Sweeper::MatchPredicates(const Symbol& symbol) {
  for (uint32_t request : plan_.predicates()) {
    if (OwnerOf(request).Matches(symbol.module) &&
        plan_.requests()[request].predicate()(symbol)) {
      matched_.push_back(request);
    }
  }
}

void Sweeper::MatchAddress(const Symbol& symbol) {
  for (const SweepPlan::AddressRef& ref : plan_.AddressesNear(symbol.addr)) {
    if (ref.addr == symbol.addr) {
      matched_.push_back(ref.request);
    } else {
      soft_.push_back({0, ref.request, SoftMatch::How::kNear, 0});
    }
  }
}

void Sweeper::NoteOther(const Symbol& symbol, const NameSet::Hit& hit) {
  if (hit.id != NameSet::kNone) {
    NoteSeen(hit.id);
    plan_.ForEachUse(hit.id, [this, &symbol](const NameUse& use) {
      if (use.what == NameUse::What::kMarker) {
        NoteMarker(symbol, use.detail);
      } else if (use.what == NameUse::What::kExact &&
                 OwnerOf(use.request).Matches(symbol.module)) {
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

void Sweeper::NoteMarker(const Symbol& symbol, uint8_t marker) {
  if (symbol.module.empty()) result_->markers[marker] = symbol.addr;
}

void Sweeper::NoteSeen(uint32_t id) {
  if (!stop_early_ || seen_ids_[id]) return;
  seen_ids_[id] = true;
  --unseen_;
}

// `stored_name` is the name as it lies in the set, or null.
void Sweeper::AddRow(const Symbol& symbol, uint32_t owner,
                     const char* stored_name) {
  SymbolRow row;
  row.addr = symbol.addr;
  row.name_data = stored_name != nullptr
                      ? stored_name
                      : result_->text.Copy(symbol.name).data();
  row.name_len = static_cast<uint32_t>(symbol.name.size());
  row.requests = result_->sets.Intern(matched_);
  row.owner = owner;
  row.type = symbol.type;
  row.plain = !matched_.empty();
  for (SoftMatch soft : soft_) {
    soft.row = static_cast<uint32_t>(result_->rows.size());
    result_->soft.push_back(soft);
  }
  result_->rows.push_back(row);
}

void Sweeper::AddAlias(const Symbol& symbol, uint32_t owner) {
  if (!IsFunctionType(symbol.type) || IsNeverTarget(symbol.name)) return;
  matched_.clear();
  soft_.clear();
  AddRow(symbol, owner, nullptr);
}

void Sweeper::TakeModuleLine(const LineBatch& batch, uint32_t i) {
  Symbol symbol;
  if (!ParseKsymLine(batch.line(i), &symbol)) {
    NoteMalformed(batch, i);
    return;
  }
  if (owner_ == kCore || symbol.module != result_->owners[owner_]) {
    LeaveOwner();
    EnterOwner(symbol.module);
  }
  const bool function = IsFunctionType(symbol.type);
  result_->functions += function;
  result_->zero_functions += function && symbol.addr == 0;
  LineMark& mark = marks_[i];
  mark.hit = plan_.names().Find(symbol.name);
  if (WantsModuleFunction(symbol, mark) &&
      Match(symbol, mark.hit, mark.dotted)) {
    AddRow(symbol, owner_, mark.hit.name);
  } else if (function && !pseudo_owner_) {
    AddBystander(symbol);
  }
}

bool Sweeper::WantsModuleFunction(const Symbol& symbol,
                                  const LineMark& mark) const {
  if (mark.flagged || mark.hit.id != NameSet::kNone ||
      (has_addresses_ && plan_.starts().Contains(symbol.addr))) {
    return true;
  }
  if (!IsFunctionType(symbol.type)) return false;
  return !plan_.predicates().empty() ||
         plan_.module_globs().MatchesAny(symbol.name) ||
         (mark.dotted &&
          plan_.module_globs().MatchesAny(StripLlvm(symbol.name)));
}

void Sweeper::EnterOwner(std::string_view module) {
  pseudo_owner_ = IsPseudoOwner(module);
  owner_first_row_ = result_->rows.size();
  const auto known = owner_numbers_.find(module);
  if (known != owner_numbers_.end()) {
    // Its symbols are not all together.
    result_->disordered |= !pseudo_owner_;
    owner_ = known->second;
    return;
  }
  owner_ = static_cast<uint32_t>(result_->owners.size());
  result_->owners.push_back(result_->text.Copy(module));
  owner_numbers_.emplace(result_->owners.back(), owner_);
}

// Finds the aliases of the module's rows among its other functions, which are
// in no order.
void Sweeper::LeaveOwner() {
  std::vector<uint64_t> addrs;
  if (!bystanders_.empty()) {
    for (size_t i = owner_first_row_; i < result_->rows.size(); ++i) {
      addrs.push_back(result_->rows[i].addr);
    }
    std::sort(addrs.begin(), addrs.end());
  }
  for (const Bystander& other : bystanders_) {
    if (!std::binary_search(addrs.begin(), addrs.end(), other.addr)) continue;
    Symbol symbol;
    symbol.addr = other.addr;
    symbol.type = other.type;
    symbol.name = std::string_view(bystander_names_)
                      .substr(other.name_begin, other.name_len);
    AddAlias(symbol, owner_);
  }
  bystanders_.clear();
  bystander_names_.clear();
  owner_ = kCore;
  pseudo_owner_ = false;
}

void Sweeper::AddBystander(const Symbol& symbol) {
  if (symbol.addr == 0) return;
  bystanders_.push_back(
      {symbol.addr, static_cast<uint32_t>(bystander_names_.size()),
       static_cast<uint32_t>(symbol.name.size()), symbol.type});
  bystander_names_ += symbol.name;
}

}  // namespace

absl::Status Sweep(const SweepPlan& plan, const SweepOptions& options,
                   ListFile* kallsyms, SweepResult* result) {
  Sweeper sweeper(plan, options, result);
  absl::Status status = ReadLines(
      kallsyms,
      [&sweeper](const LineBatch& batch) { return sweeper.Take(batch); },
      sweeper.stop());
  sweeper.Finish();
  return status;
}

}  // namespace ksweep
