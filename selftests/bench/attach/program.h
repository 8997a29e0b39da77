// The program that is attached, which does nothing.

#ifndef KSWEEP_SELFTESTS_BENCH_ATTACH_PROGRAM_H_
#define KSWEEP_SELFTESTS_BENCH_ATTACH_PROGRAM_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attach_bench.skel.h"
#include "ksweep/kind.h"
#include "ksweep/resolve.h"

namespace ksweep::bench {

class Nothing {
 public:
  // Prepared for `kind`.
  static absl::StatusOr<Nothing> Load(Kind kind);
  // The same, and for a function of it, which fentry needs.
  static absl::StatusOr<Nothing> Load(Kind kind, const Resolution& resolution);

  bpf_program* prog() const { return bpf_->progs.nothing; }

 private:
  struct Destroy {
    void operator()(attach_bench_bpf* bpf) const {
      attach_bench_bpf::destroy(bpf);
    }
  };

  static absl::StatusOr<Nothing> LoadPrepared(
      absl::FunctionRef<absl::Status(bpf_program*)> prepare);

  Nothing() : bpf_(attach_bench_bpf::open()) {}

  std::unique_ptr<attach_bench_bpf, Destroy> bpf_;
};

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_ATTACH_PROGRAM_H_
