// What the tests on a real kernel share.

#ifndef KSWEEP_SELFTESTS_KERNEL_KERNEL_TEST_UTIL_H_
#define KSWEEP_SELFTESTS_KERNEL_KERNEL_TEST_UTIL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ksweep/attach.h"
#include "ksweep/attachment.h"
#include "ksweep/resolve.h"

struct count_bpf;

namespace ksweep::testing {

// Whether the booted kernel's configuration has `option` as y or m. The file is
// named by KSWEEP_KERNEL_CONFIG; without it the test fails.
bool KernelHas(std::string_view option);

// From the kernel's BTF, where the structure is only if the link is compiled
// in.
bool KernelHasTracingMulti();

std::vector<Request> ParseRequestTexts(const std::vector<std::string>& texts);

// Resolves on the running kernel; fails the test if that fails.
Resolution ResolveHere(const std::vector<std::string>& requests,
                       const ResolveOptions& options = {},
                       const KernelFiles& files = KernelFiles());

struct Hit {
  uint64_t cnt = 0;
  uint64_t ip = 0;
};

// The counting program, loaded with room for `slots` functions.
class Counter {
 public:
  // Null if it cannot be loaded, which fails the test.
  static std::unique_ptr<Counter> Load(Kind kind, size_t slots);
  // With room for all targets, and for the first one that fits `kind`, which
  // fentry, fexit and fsession need.
  static std::unique_ptr<Counter> Load(Kind kind, const Resolution& resolution);
  // The same for the best kind of the kernel; see choice().
  static std::unique_ptr<Counter> LoadAuto(size_t slots);
  // Only opened: program() is to be prepared, and then LoadOpened(). Null
  // after an error, which fails the test.
  static std::unique_ptr<Counter> Open();
  // False after an error, which fails the test.
  bool LoadOpened(size_t slots);
  ~Counter();

  bpf_program* program() const;
  const KindChoice& choice() const { return choice_; }
  // Counts only what this process does, or all.
  void OnlyThisProcess();
  void AllProcesses();
  Hit At(uint32_t slot) const;
  uint64_t all_hits() const;
  uint64_t bad_cookies() const;

 private:
  Counter() = default;
  // Null if `prepare` failed, or the object cannot be loaded.
  static std::unique_ptr<Counter> LoadPrepared(
      const std::function<absl::StatusOr<KindChoice>(bpf_program*)>& prepare,
      size_t slots);

  count_bpf* skeleton_ = nullptr;
  KindChoice choice_;
};

// A counting program attached to all targets of a resolution, with the first of
// the kinds that it was made for.
struct Counting {
  std::unique_ptr<Counter> counter;
  Attachment attachment;
};

// Whose calls are counted.
enum class Calls { kAll, kThisProcess };

absl::StatusOr<Counting> AttachCounter(const Resolution& resolution,
                                       Calls calls,
                                       const AttachOptions& options = {});

// Calls getppid(2) `cnt` times, by the system call itself.
void TriggerGetppid(int cnt);

// Lines of the filter list of the running kernel without the kernel's
// placeholders and what the default deny list names.
struct ListedFunc {
  std::string name;
  std::string module;
};
std::vector<ListedFunc> ListedFuncs();

// Writes a file below /proc or /sys for the life of the object.
class ScopedSetting {
 public:
  ScopedSetting(std::string path, const std::string& value);
  ~ScopedSetting();

 private:
  std::string path_;
  std::string before_;
};

}  // namespace ksweep::testing

#endif  // KSWEEP_SELFTESTS_KERNEL_KERNEL_TEST_UTIL_H_
