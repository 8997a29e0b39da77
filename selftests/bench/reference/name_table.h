// Tables of a kernel's symbols that are kept for many questions, to compare the
// symbol index with.

#ifndef KSWEEP_SELFTESTS_BENCH_REFERENCE_NAME_TABLE_H_
#define KSWEEP_SELFTESTS_BENCH_REFERENCE_NAME_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "selftests/bench/reference/core_symbols.h"

namespace ksweep::bench {

// No address: some symbols are at 0.
inline constexpr uint64_t kNoAddr = ~uint64_t{0};

class NameTable {
 public:
  virtual ~NameTable() = default;

  // For each of `names` the address of the first symbol, in address order, that
  // has it, or kNoAddr. Names are NUL-terminated.
  virtual void Find(absl::Span<const std::string_view> names,
                    uint64_t* addrs) const = 0;
};

// What the kernel's table can be; see kernel_table.h. `kBytes` reads a sequence
// number byte by byte, `kWord` at once, `kPacked` has fewer bits.
enum class KernelNames { kEvery256, kEvery16, kTwoLevel, kSummed };
enum class KernelSeqs { kBytes, kWord, kPacked };
// How a name is compared: expanded and then, or token by token up to the first
// byte that differs.
enum class KernelCompare { kExpanded, kOnTheFly };

struct KernelForm {
  KernelNames names = KernelNames::kEvery256;
  KernelSeqs seqs = KernelSeqs::kBytes;
  KernelCompare compare = KernelCompare::kExpanded;
};

// The forms that are compared, by name.
struct NamedKernelForm {
  const char* label;
  KernelForm form;
};
inline constexpr KernelForm kKernel256 = {};
inline constexpr KernelForm kKernel16 = {
    KernelNames::kEvery16, KernelSeqs::kWord, KernelCompare::kOnTheFly};
inline constexpr NamedKernelForm kKernelForms[] = {
    {"kernel 256:1", kKernel256},
    {"  + compare on the fly",
     {KernelNames::kEvery256, KernelSeqs::kBytes, KernelCompare::kOnTheFly}},
    {"  + markers 16:1",
     {KernelNames::kEvery16, KernelSeqs::kBytes, KernelCompare::kOnTheFly}},
    {"kernel 16:1 (+ word reads)", kKernel16},
    {"  two-level markers",
     {KernelNames::kTwoLevel, KernelSeqs::kWord, KernelCompare::kOnTheFly}},
    {"  256:1, packed order",
     {KernelNames::kEvery256, KernelSeqs::kPacked, KernelCompare::kOnTheFly}},
    {"  length bytes, packed order",
     {KernelNames::kSummed, KernelSeqs::kPacked, KernelCompare::kOnTheFly}},
};

// Bytes of the parts of a kernel's table.
struct KernelBytes {
  uint64_t names = 0;
  uint64_t markers = 0;
  uint64_t tokens = 0;
  uint64_t offsets = 0;
  uint64_t seqs = 0;

  uint64_t total() const { return names + markers + tokens + offsets + seqs; }
};

// The symbol that an address belongs to.
struct Place {
  std::string_view name;  // until the next one
  uint64_t offset = 0;
  uint64_t size = 0;  // up to the next symbol; 0: there is none
};

struct CompressedNames;
class KernelNameTable : public NameTable {
 public:
  // For each of `addrs`, none of which is before the first symbol, the last
  // symbol at or before it; of several at one address the first.
  virtual void Symbolize(absl::Span<const uint64_t> addrs,
                         absl::FunctionRef<void(const Place&)> visit) const = 0;
  // Every symbol, in address order.
  virtual void ForEach(
      absl::FunctionRef<void(uint64_t addr, char type, std::string_view name)>
          visit) const = 0;
  virtual KernelBytes bytes() const = 0;
};

// `names` are those of `symbols`, which the forms share because they take a
// second to make.
std::unique_ptr<KernelNameTable> MakeKernelTable(
    KernelForm form, const std::vector<CoreSymbol>& symbols,
    const CompressedNames& names);

// A balanced tree of all names, the first idea of 2021.
std::unique_ptr<NameTable> MakeTreeTable(
    const std::vector<CoreSymbol>& symbols);

// The kernel's names, passed over from the first for each one that is asked
// for, as the kernel did until Linux v6.2.
std::unique_ptr<NameTable> MakeLinearTable(
    const std::vector<CoreSymbol>& symbols, const CompressedNames& names);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_REFERENCE_NAME_TABLE_H_
