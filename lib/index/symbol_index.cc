#include "ksweep/symbol_index.h"

namespace ksweep {

struct SymbolIndex::Rep {};

namespace {

absl::Status Missing() { return absl::UnimplementedError("symbol index"); }

}  // namespace

SymbolIndex::SymbolIndex() : SymbolIndex(nullptr) {}
SymbolIndex::SymbolIndex(std::shared_ptr<const Rep> rep)
    : rep_(std::move(rep)) {}
SymbolIndex::SymbolIndex(const SymbolIndex&) = default;
SymbolIndex& SymbolIndex::operator=(const SymbolIndex&) = default;
SymbolIndex::SymbolIndex(SymbolIndex&&) noexcept = default;
SymbolIndex& SymbolIndex::operator=(SymbolIndex&&) noexcept = default;
SymbolIndex::~SymbolIndex() = default;

absl::StatusOr<SymbolIndex> SymbolIndex::FromKernel(const KernelFiles&,
                                                    const BuildOptions&) {
  return Missing();
}
absl::StatusOr<SymbolIndex> SymbolIndex::FromText(std::string_view,
                                                  const BuildOptions&) {
  return Missing();
}
absl::StatusOr<SymbolIndex> SymbolIndex::FromSystemMap(const std::string&,
                                                       const BuildOptions&) {
  return Missing();
}
absl::StatusOr<SymbolIndex> SymbolIndex::FromElf(const std::string&,
                                                 const BuildOptions&) {
  return Missing();
}
absl::StatusOr<SymbolIndex> SymbolIndex::Open(const std::string&,
                                              const OpenOptions&) {
  return Missing();
}
absl::Status SymbolIndex::Save(const std::string&) const { return Missing(); }
absl::StatusOr<SymbolIndex> SymbolIndex::WithModules(const KernelFiles&) const {
  return Missing();
}
absl::StatusOr<SymbolIndex> SymbolIndex::WithModulesFromText(
    std::string_view) const {
  return Missing();
}
absl::StatusOr<SymbolIndex> SymbolIndex::WithBtf(std::string_view) const {
  return Missing();
}
absl::StatusOr<std::vector<IndexSymbol>> SymbolIndex::Find(
    std::string_view) const {
  return Missing();
}
AddressLookup SymbolIndex::FindAddress(std::string_view) const { return {}; }
void SymbolIndex::FindAddresses(absl::Span<const std::string_view>,
                                absl::Span<AddressLookup>) const {}
absl::Status SymbolIndex::FindPrefix(
    std::string_view, absl::FunctionRef<bool(const IndexSymbolView&)>) const {
  return Missing();
}
absl::Status SymbolIndex::FindGlob(
    std::string_view, absl::FunctionRef<bool(const IndexSymbolView&)>) const {
  return Missing();
}
absl::Status SymbolIndex::ForEach(
    absl::FunctionRef<bool(const IndexSymbolView&)>) const {
  return Missing();
}
absl::StatusOr<Symbolized> SymbolIndex::Symbolize(
    uint64_t, const SymbolizeOptions&) const {
  return Missing();
}
LookupState SymbolIndex::SymbolizeFirst(uint64_t, SymbolizedName*,
                                        const SymbolizeOptions&) const {
  return LookupState::kAbsent;
}
absl::StatusOr<std::vector<IndexSymbol>> SymbolIndex::FindBtf(uint32_t) const {
  return Missing();
}
bool SymbolIndex::has_btf() const { return false; }
uint64_t SymbolIndex::size() const { return 0; }
IndexStats SymbolIndex::Stats() const { return {}; }
absl::Status SymbolIndex::Verify() const { return Missing(); }

}  // namespace ksweep
