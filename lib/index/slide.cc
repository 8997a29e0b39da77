#include "lib/index/slide.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/index/read_symbols.h"
#include "lib/source/build_id.h"
#include "lib/source/restrictions.h"

namespace ksweep {
namespace {

// Symbols behind `_stext` to compare when the build ids agree.
constexpr uint64_t kAnchors = 32;
// And of all of kallsyms, when they are not known, one in so many lines.
constexpr uint64_t kSparse = 61;

std::string Hex(std::string_view bytes) {
  return std::string(absl::BytesToHexString(Av(bytes)));
}

absl::Status Stale(std::string_view what) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "the index is of another kernel: %s; build it anew", Av(what)));
}

class Comparison {
 public:
  Comparison(const Table& core, uint64_t stext, bool all)
      : core_(core), stext_(stext), all_(all) {}

  // Takes the kernel's lines one by one. False when it has seen enough.
  bool Take(const Symbol& symbol);

  absl::StatusOr<uint64_t> Result(const KernelFiles& files) const;

 private:
  struct Anchor {
    uint64_t addr;
    std::string name;
  };

  void Compare(uint64_t addr, std::string_view name);
  void CompareEarlier();

  const Table& core_;
  const uint64_t stext_;
  const bool all_;
  std::optional<uint64_t> slide_;
  std::vector<Anchor> earlier_;  // in front of `_stext`
  uint64_t lines_ = 0;
  uint64_t behind_ = 0;
  uint64_t nonzero_ = 0;
  uint64_t compared_ = 0;
  std::string moved_;  // the first that is not where it should be
};

void Comparison::Compare(uint64_t addr, std::string_view name) {
  std::vector<Entry> entries;
  core_.FindAll(name, &entries);
  NameBuffer buffer;
  ++compared_;
  for (const Entry& entry : entries) {
    IndexSymbolView symbol;
    if (!core_.Describe(entry, &buffer, &symbol)) break;
    if (symbol.addr + (core_.SlidesAt(entry) ? *slide_ : 0) == addr) return;
  }
  if (moved_.empty()) moved_ = std::string(name);
}

void Comparison::CompareEarlier() {
  for (const Anchor& anchor : earlier_) Compare(anchor.addr, anchor.name);
  earlier_.clear();
}

bool Comparison::Take(const Symbol& symbol) {
  if (!symbol.module.empty() || IsMappingSymbol(symbol.name)) return true;
  ++lines_;
  nonzero_ += symbol.addr != 0;
  if (symbol.name == "_stext" && !slide_.has_value()) {
    slide_ = symbol.addr - stext_;
    CompareEarlier();
    return true;
  }
  if (!slide_.has_value()) {
    if (lines_ % kSparse == 1) {
      earlier_.push_back({symbol.addr, std::string(symbol.name)});
    }
    return true;
  }
  if (all_) {
    if (lines_ % kSparse == 0) Compare(symbol.addr, symbol.name);
    return true;
  }
  Compare(symbol.addr, symbol.name);
  return ++behind_ < kAnchors;
}

absl::StatusOr<uint64_t> Comparison::Result(const KernelFiles& files) const {
  if (nonzero_ == 0) {
    return absl::FailedPreconditionError(ExplainHiddenAddresses(files));
  }
  if (!slide_.has_value()) {
    return absl::FailedPreconditionError(
        "kallsyms has no '_stext' to tell where the kernel is");
  }
  if (!moved_.empty()) {
    return Stale(absl::StrFormat("'%s' is not where '_stext' says", moved_));
  }
  if (compared_ == 0) {
    return absl::FailedPreconditionError(
        "kallsyms has no symbol besides '_stext' to check the index with");
  }
  return *slide_;
}

}  // namespace

absl::StatusOr<uint64_t> FindSlide(const IndexData& data,
                                   const KernelFiles& files) {
  const std::string build_id = KernelBuildId(files);
  const bool known = !build_id.empty() && !data.info.build_id.empty();
  if (known && build_id != data.info.build_id) {
    return Stale(absl::StrFormat("its build id is %s, the kernel's %s",
                                 Hex(data.info.build_id), Hex(build_id)));
  }
  if (!data.info.has_stext) {
    return absl::FailedPreconditionError(
        "the index has no '_stext', so it cannot be compared with a kernel");
  }
  Comparison comparison(data.core.table, data.info.stext, !known);
  absl::Status status = ForEachKsym(
      files, [&](const Symbol& symbol) { return comparison.Take(symbol); });
  if (!status.ok()) return status;
  return comparison.Result(files);
}

}  // namespace ksweep
