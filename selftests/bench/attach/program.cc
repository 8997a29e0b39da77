#include "selftests/bench/attach/program.h"

#include <cerrno>

#include "absl/status/status.h"
#include "ksweep/attach.h"
#include "lib/base/errno_status.h"

namespace ksweep::bench {

absl::StatusOr<Nothing> Nothing::Load(Kind kind) {
  return LoadPrepared(
      [kind](bpf_program* prog) { return PrepareProgram(prog, kind); });
}

absl::StatusOr<Nothing> Nothing::Load(Kind kind, const Resolution& resolution) {
  return LoadPrepared([&](bpf_program* prog) {
    return PrepareProgram(prog, kind, resolution);
  });
}

absl::StatusOr<Nothing> Nothing::LoadPrepared(
    absl::FunctionRef<absl::Status(bpf_program*)> prepare) {
  Nothing nothing;
  if (nothing.bpf_ == nullptr) return ErrnoStatus(errno, "no BPF object");
  absl::Status status = prepare(nothing.prog());
  if (!status.ok()) return status;
  const int err = attach_bench_bpf::load(nothing.bpf_.get());
  if (err != 0) return ErrnoStatus(-err, "loading the program");
  return nothing;
}

}  // namespace ksweep::bench
