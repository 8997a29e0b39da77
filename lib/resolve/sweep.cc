#include "lib/resolve/sweep.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "lib/base/bit_set.h"
#include "lib/base/bytes.h"
#include "lib/resolve/address_set.h"
#include "lib/resolve/bystanders.h"
#include "lib/resolve/line_scan.h"
#include "lib/resolve/symbol_matcher.h"
#include "lib/resolve/symbol_name.h"
#include "lib/source/kallsyms.h"
#include "lib/source/line_reader.h"

namespace ksweep {
namespace {

constexpr size_t kMaxMalformedLines = 100;
constexpr uint32_t kCore = 0;
constexpr std::string_view kLlvmMark = ".llvm.";

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

class Sweeper {
 public:
  Sweeper(const SweepPlan& plan, const SweepOptions& options,
          SweepResult* result);

  // Takes a piece of text; returns the bytes done.
  size_t Take(const TextPiece& piece);
  void Finish() { LeaveOwner(); }
  const bool* stop() const { return &stop_; }

 private:
  struct LineHit {
    uint32_t line = UINT32_MAX;
    NameSet::Hit hit;
  };

  uint32_t EndOfWholeRuns() const;
  bool SameAddr(uint32_t i, uint32_t k) const;

  // Flagging the lines that deserve a closer look.
  void FlagDotted(uint32_t cnt);
  void FlagOddLine(uint32_t i);
  void FlagNames(uint32_t cnt);
  void FlagFunctions(uint32_t from, uint32_t to);
  void FlagAddresses(uint32_t from, uint32_t to);
  void NoteFunctions(uint32_t from, uint32_t to);
  void NoteFunction(bool hidden);
  void NoteMalformed(uint32_t i);

  // Looking at them.
  void TakeCore(uint32_t from, uint32_t to);
  uint32_t TakeRun(uint32_t i, uint32_t from, uint32_t to);
  uint32_t TakeAliases(uint32_t i, uint32_t from, uint32_t to);
  bool TakeLine(uint32_t i);
  bool TakePlain(uint32_t i, const NameSet::Hit& hit);
  bool SymbolAt(uint32_t i, Symbol* symbol) const;
  NameSet::Hit HitOf(uint32_t line);

  // Modules.
  void TakeModules(uint32_t from, uint32_t to);
  uint32_t TakeOwnerRun(uint32_t i, uint32_t to);
  bool IsOwnersLine(uint32_t i) const;
  void TakeModuleLine(uint32_t i);
  bool WantsModuleLine(uint32_t i, bool function) const;
  void TakeOddModuleLine(const Symbol& symbol);
  void AddBystander(uint64_t addr, char type, std::string_view name);
  void EnterOwner(std::string_view module);
  void LeaveOwner();

  const SweepPlan& plan_;
  SweepResult* const result_;
  // Whether functions matter whose names are not in the set, and whether all
  // of them do.
  const bool some_functions_;
  const bool every_function_;
  const bool some_module_functions_;
  const bool has_addresses_;
  const bool only_names_;  // of any owner

  SymbolMatcher matcher_;

  // The piece under way, and of its lines:
  LineScan scan_;
  uint64_t first_line_ = 1;
  BitSet flagged_;
  BitSet dotted_;              // with a dot in the name, or odd
  std::vector<LineHit> hits_;  // ascending, then one behind all lines
  size_t next_hit_ = 0;
  std::vector<NameSet::Probe> prefixes_;
  AddrText last_function_;

  absl::flat_hash_map<std::string_view, uint32_t> owner_numbers_;
  uint32_t owner_ = kCore;
  std::string owner_tag_;  // as it stands behind a name: "\t[module]"
  bool pseudo_owner_ = false;
  size_t owner_first_row_ = 0;
  // Functions of the module under way that no request matched: they may be
  // aliases of one that does.
  Bystanders bystanders_;

  bool stop_ = false;
};

Sweeper::Sweeper(const SweepPlan& plan, const SweepOptions& options,
                 SweepResult* result)
    : plan_(plan),
      result_(result),
      some_functions_(!plan.core_globs().empty() || !plan.predicates().empty()),
      every_function_(plan.core_globs().has_star() ||
                      !plan.predicates().empty()),
      some_module_functions_(!plan.module_globs().empty() ||
                             !plan.predicates().empty()),
      has_addresses_(!plan.starts().empty()),
      only_names_(plan.any_owner() && !some_functions_ &&
                  !some_module_functions_ && !has_addresses_),
      matcher_(plan, options.stop_early, result),
      scan_(plan.names().filter()) {
  result_->owners.push_back("");
  // Mostly one row for each name; the pages of those that do not come are not
  // touched.
  if (plan.only_exact()) result_->rows.reserve(plan.exact_name_cnt());
}

size_t Sweeper::Take(const TextPiece& piece) {
  scan_.Scan(piece.text);
  const uint32_t cnt = piece.is_last ? scan_.cnt() : EndOfWholeRuns();
  first_line_ = result_->lines + 1;
  result_->lines += cnt;
  flagged_.Reset(cnt);
  dotted_.Reset(cnt);
  FlagDotted(cnt);
  for (uint32_t i : scan_.odd_lines()) {
    if (i < cnt && !scan_.is_module(i)) FlagOddLine(i);
  }
  FlagNames(cnt);
  for (uint32_t from = 0, to; from < cnt; from = to) {
    to = scan_.modules().Next(from, cnt);
    if (to > from) {
      TakeCore(from, to);
      continue;
    }
    while (to < cnt && scan_.is_module(to)) ++to;
    TakeModules(from, to);
  }
  stop_ = matcher_.is_done();
  return static_cast<size_t>(scan_.begin(cnt) - piece.text.data());
}

// The digits that come first differ least.
bool Sweeper::SameAddr(uint32_t i, uint32_t k) const {
  const char* const a = scan_.begin(i);
  const char* const b = scan_.begin(k);
  return LoadU64(a + 8) == LoadU64(b + 8) && LoadU64(a) == LoadU64(b);
}

// The lines before the last run of equal addresses: that run may go on in the
// next piece, and is looked at as a whole.
uint32_t Sweeper::EndOfWholeRuns() const {
  constexpr uint32_t kLongestRun = 4096;
  const uint32_t cnt = scan_.cnt();
  if (scan_.is_odd(cnt - 1) || IsZero16(scan_.begin(cnt - 1))) return cnt;
  uint32_t first = cnt - 1;
  while (first > 0 && !scan_.is_odd(first - 1) && SameAddr(first - 1, first)) {
    --first;
  }
  if (cnt - first <= kLongestRun) return first;
  // No kernel has such a run.
  result_->disordered = true;
  return cnt;
}

// Names with suffixes of the compiler: what they were made of may be asked for.
// It can contain dots itself, so every dot is tried.
void Sweeper::FlagDotted(uint32_t cnt) {
  const NameSet::Filter filter = plan_.names().filter();
  prefixes_.clear();
  for (const LineScan::Dot& dot : scan_.dots()) {
    if (dot.line >= cnt) break;
    dotted_.Add(dot.line);
    const char* const name = scan_.begin(dot.line) + kKsymNameColumn;
    if (dot.at <= name) continue;
    const std::string_view base(name, static_cast<size_t>(dot.at - name));
    if (plan_.wants_suffixes() && filter.MayContain(base)) {
      prefixes_.push_back({name, static_cast<uint32_t>(base.size()), dot.line});
    }
    if (some_functions_ &&
        std::memcmp(dot.at, kLlvmMark.data(), kLlvmMark.size()) == 0 &&
        plan_.core_globs().MatchesAny(base)) {
      flagged_.Add(dot.line);
    }
  }
  plan_.names().FindBatch(
      prefixes_,
      [this](uint32_t line, const NameSet::Hit&) { flagged_.Add(line); });
}

// Shorter addresses, as of 32-bit kernels, and what is no symbol at all.
void Sweeper::FlagOddLine(uint32_t i) {
  Symbol symbol;
  if (!ParseKsymLine(scan_.line(i), &symbol)) {
    NoteMalformed(i);
    return;
  }
  // There are no columns to compare, so its order is not known.
  result_->disordered = true;
  dotted_.Add(i);
  // Too few to save anything.
  flagged_.Add(i);
  if (IsFunctionType(symbol.type)) NoteFunction(symbol.addr == 0);
}

void Sweeper::FlagNames(uint32_t cnt) {
  absl::Span<const NameSet::Probe> probes = scan_.probes();
  while (!probes.empty() && probes.back().tag >= cnt) probes.remove_suffix(1);
  hits_.clear();
  next_hit_ = 0;
  plan_.names().FindBatch(probes,
                          [this](uint32_t line, const NameSet::Hit& hit) {
                            hits_.push_back({line, hit});
                            flagged_.Add(line);
                          });
  hits_.emplace_back();
}

void Sweeper::FlagFunctions(uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; ++i) {
    if (scan_.is_odd(i) || !IsFunctionType(scan_.type(i))) continue;
    if (every_function_ || plan_.core_globs().MatchesAny(scan_.name(i))) {
      flagged_.Add(i);
    }
  }
}

void Sweeper::FlagAddresses(uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; ++i) {
    if (!scan_.is_odd(i) && plan_.starts().Contains(scan_.addr(i))) {
      flagged_.Add(i);
    }
  }
}

// The last function stands for all before it, where all are in order.
void Sweeper::NoteFunctions(uint32_t from, uint32_t to) {
  const auto is_function = [this](uint32_t i) {
    return !scan_.is_odd(i) && IsFunctionType(scan_.type(i));
  };
  const auto note = [this](uint32_t i) {
    const char* const begin = scan_.begin(i);
    const AddrText addr = AddrText::Load(begin);
    result_->disordered |= addr < last_function_;
    last_function_ = addr;
    NoteFunction(IsZero16(begin));
  };
  // Something else can then stand between two names of one address.
  result_->disordered |= !scan_.ordered();
  if (scan_.ordered() && !scan_.has_small()) {
    while (to > from && !is_function(to - 1)) --to;
    if (to > from) note(to - 1);
    return;
  }
  for (uint32_t i = from; i < to; ++i) {
    if (is_function(i)) note(i);
  }
}

void Sweeper::NoteFunction(bool hidden) {
  (hidden ? result_->has_hidden : result_->has_shown) = true;
}

void Sweeper::NoteMalformed(uint32_t i) {
  ++result_->malformed;
  // It can stand between two names of one address.
  result_->disordered = true;
  if (result_->malformed_lines.size() < kMaxMalformedLines) {
    result_->malformed_lines.push_back(first_line_ + i);
  }
}

void Sweeper::TakeCore(uint32_t from, uint32_t to) {
  // The kernel lists its own symbols before all others.
  result_->disordered |= owner_ != kCore;
  LeaveOwner();
  NoteFunctions(from, to);
  if (some_functions_) FlagFunctions(from, to);
  if (has_addresses_) FlagAddresses(from, to);
  for (uint32_t i = flagged_.Next(from, to); i < to;) {
    i = flagged_.Next(TakeRun(i, from, to), to);
  }
}

// Takes the flagged symbols with the address of line i, the first of them.
// Returns the line behind them.
uint32_t Sweeper::TakeRun(uint32_t i, uint32_t from, uint32_t to) {
  if ((i > from && SameAddr(i - 1, i)) || (i + 1 < to && SameAddr(i + 1, i))) {
    return TakeAliases(i, from, to);
  }
  TakeLine(i);
  return i + 1;
}

// The same where there are others with that address: if one matches, the others
// become its aliases.
uint32_t Sweeper::TakeAliases(uint32_t i, uint32_t from, uint32_t to) {
  uint32_t first = i, last = i + 1;
  if (!scan_.is_odd(i) && !IsZero16(scan_.begin(i))) {
    const auto same = [this, i](uint32_t k) {
      return !scan_.is_odd(k) && SameAddr(k, i);
    };
    while (first > from && same(first - 1)) --first;
    while (last < to && same(last)) ++last;
  }
  BitSet taken;
  taken.Reset(last - first);
  bool any = false;
  for (uint32_t k = i; k < last; ++k) {
    if (!flagged_.Has(k) || !TakeLine(k)) continue;
    taken.Add(k - first);
    any = true;
  }
  Symbol symbol;
  for (uint32_t k = first; any && k < last; ++k) {
    if (!taken.Has(k - first) && SymbolAt(k, &symbol))
      matcher_.AddAlias(symbol, owner_);
  }
  return last;
}

// False if the symbol matches nothing.
bool Sweeper::TakeLine(uint32_t i) {
  NameSet::Hit hit = HitOf(i);
  if (TakePlain(i, hit)) return true;
  Symbol symbol;
  if (!SymbolAt(i, &symbol)) return false;
  if (scan_.is_odd(i)) hit = plan_.names().Find(symbol.name);
  if (!matcher_.Match(symbol, hit, dotted_.Has(i), pseudo_owner_)) return false;
  matcher_.AddRow(symbol, owner_, hit.name);
  return true;
}

// What most matches are, without going through all that can be: a function that
// one request asks for by its name. False if it is anything else.
bool Sweeper::TakePlain(uint32_t i, const NameSet::Hit& hit) {
  if (!only_names_ || !plan_.IsOneRequest(hit) || dotted_.Has(i) ||
      pseudo_owner_ || !IsFunctionType(scan_.type(i))) {
    return false;
  }
  const std::string_view name = scan_.name(i);
  if (IsNeverTarget(name, /*has_dot=*/false)) return false;
  matcher_.AddPlainRow({scan_.addr(i), scan_.type(i), name, {}}, owner_, hit);
  return true;
}

bool Sweeper::SymbolAt(uint32_t i, Symbol* symbol) const {
  if (scan_.is_odd(i)) return ParseKsymLine(scan_.line(i), symbol);
  symbol->addr = scan_.addr(i);
  symbol->type = scan_.type(i);
  symbol->name = scan_.name(i);
  symbol->module = result_->owners[owner_];
  return true;
}

// Lines are asked for in ascending order.
NameSet::Hit Sweeper::HitOf(uint32_t line) {
  while (hits_[next_hit_].line < line) ++next_hit_;
  return hits_[next_hit_].line == line ? hits_[next_hit_].hit : NameSet::Hit();
}

// Lines with a tab, all of them.
void Sweeper::TakeModules(uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to;) i = TakeOwnerRun(i, to);
}

// Takes line i, and those behind it that have the same module. Returns the line
// behind these.
uint32_t Sweeper::TakeOwnerRun(uint32_t i, uint32_t to) {
  Symbol symbol;
  if (!ParseKsymLine(scan_.line(i), &symbol)) {
    NoteMalformed(i);
    return i + 1;
  }
  if (owner_ == kCore || symbol.module != result_->owners[owner_]) {
    LeaveOwner();
    EnterOwner(symbol.module);
  }
  if (!IsOwnersLine(i)) {
    TakeOddModuleLine(symbol);
    return i + 1;
  }
  while (i < to && IsOwnersLine(i)) TakeModuleLine(i++);
  return i;
}

// True if the line has the usual columns, and behind its tab the module under
// way.
bool Sweeper::IsOwnersLine(uint32_t i) const {
  if (scan_.is_odd(i)) return false;
  const char* const tab = scan_.tab(i);
  return static_cast<size_t>(scan_.end(i) - tab) == owner_tag_.size() &&
         SameBytes(tab, owner_tag_.data(), owner_tag_.size());
}

void Sweeper::TakeModuleLine(uint32_t i) {
  const bool function = IsFunctionType(scan_.type(i));
  if (function) NoteFunction(IsZero16(scan_.begin(i)));
  if ((flagged_.Has(i) || WantsModuleLine(i, function)) && TakeLine(i)) return;
  if (function) AddBystander(scan_.addr(i), scan_.type(i), scan_.name(i));
}

// A line that is not as lines of modules usually are.
void Sweeper::TakeOddModuleLine(const Symbol& symbol) {
  const bool function = IsFunctionType(symbol.type);
  if (function) NoteFunction(symbol.addr == 0);
  const NameSet::Hit hit = plan_.names().Find(symbol.name);
  if (matcher_.Match(symbol, hit, /*dotted=*/true, pseudo_owner_)) {
    matcher_.AddRow(symbol, owner_, hit.name);
  } else if (function) {
    AddBystander(symbol.addr, symbol.type, symbol.name);
  }
}

bool Sweeper::WantsModuleLine(uint32_t i, bool function) const {
  if (has_addresses_ && plan_.starts().Contains(scan_.addr(i))) return true;
  if (!some_module_functions_ || !function) return false;
  const std::string_view name = scan_.name(i);
  return !plan_.predicates().empty() || plan_.module_globs().MatchesAny(name) ||
         (dotted_.Has(i) && plan_.module_globs().MatchesAny(StripLlvm(name)));
}

void Sweeper::AddBystander(uint64_t addr, char type, std::string_view name) {
  if (addr != 0 && !pseudo_owner_) bystanders_.Add(addr, type, name);
}

void Sweeper::EnterOwner(std::string_view module) {
  pseudo_owner_ = IsPseudoOwner(module);
  owner_tag_ = "\t[";
  owner_tag_ += module;
  owner_tag_ += ']';
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
  }
  if (!addrs.empty()) {
    const AddressSet wanted(std::move(addrs));
    bystanders_.ForEach([this, &wanted](const Symbol& symbol) {
      if (wanted.Contains(symbol.addr)) matcher_.AddAlias(symbol, owner_);
    });
  }
  bystanders_.Clear();
  owner_ = kCore;
  pseudo_owner_ = false;
}

}  // namespace

absl::Status Sweep(const SweepPlan& plan, const SweepOptions& options,
                   ListFile* kallsyms, SweepResult* result) {
  Sweeper sweeper(plan, options, result);
  absl::Status status = ReadText(
      kallsyms,
      [&sweeper](const TextPiece& piece) { return sweeper.Take(piece); },
      sweeper.stop());
  sweeper.Finish();
  return status;
}

}  // namespace ksweep
