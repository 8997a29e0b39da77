// Which of the two objects of a session program to open: the kernel's session
// calls have two forms, see <ksweep/session.bpf.h>.
//
//   auto skel = ksweep::OpenSessionSkeleton<latency_bpf, latency_ctx_bpf>(
//       latency_bpf__create_skeleton);
//   ksweep::PrepareProgram((*skel)->progs.latency,
//                          ksweep::Kind::kKprobeSession);
//   latency_bpf__load(skel->get());

#ifndef KSWEEP_SESSION_H_
#define KSWEEP_SESSION_H_

#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

struct btf;

namespace ksweep {

// The form of bpf_session_is_return() and bpf_session_cookie().
enum class SessionAbi : uint8_t {
  kNone,  // the kernel has none: before Linux 6.10, or without CONFIG_FPROBE
  kVoid,  // (void): seen from Linux 6.12 to 6.18
  kCtx,   // (void *ctx): seen in Linux 7.3
};

// By the calls' prototypes in `kernel_btf`. Unimplemented for a form that this
// version does not know. Walks all types once, some milliseconds.
absl::StatusOr<SessionAbi> SessionAbiOf(const btf& kernel_btf);

// The same for the running kernel, whose BTF is loaded by libbpf
// (/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF). Costs some tens of
// milliseconds the first time; an answer is remembered, an error is not. An
// error keeps the errno, see ErrnoOf() in status.h. Thread-safe.
absl::StatusOr<SessionAbi> DetectSessionAbi();

// The bytes of one of two objects for bpf_object__open_mem(), which are
// compiled with KSWEEP_SESSION_CTX as 0 and as 1. They belong to the caller
// still. Unimplemented for kNone, with what the kernel lacks.
absl::StatusOr<absl::Span<const char>> PickSessionObject(
    SessionAbi abi, absl::Span<const char> void_form,
    absl::Span<const char> ctx_form);

// The same for the running kernel, with the errors of DetectSessionAbi().
absl::StatusOr<absl::Span<const char>> PickSessionObject(
    absl::Span<const char> void_form, absl::Span<const char> ctx_form);

// What the errno of a skeleton that cannot be opened means.
absl::Status SessionSkeletonError(int err);

template <typename Skeleton>
struct SessionSkeletonDeleter {
  void operator()(Skeleton* skeleton) const { Skeleton::destroy(skeleton); }
};

template <typename Skeleton>
using SessionSkeleton =
    std::unique_ptr<Skeleton, SessionSkeletonDeleter<Skeleton>>;

// Opens the object that fits the running kernel through the skeleton of the
// (void) form, so that the rest of a program has to know one type only. Both
// skeletons are bpftool's (7.0 or later) for one source, the second's struct
// lends its bytes alone. `create` is the first's x_bpf__create_skeleton().
//
// Fails as PickSessionObject(), or with libbpf's errno.
template <typename Skeleton, typename CtxSkeleton>
absl::StatusOr<SessionSkeleton<Skeleton>> OpenSessionSkeleton(
    int (*create)(Skeleton*), const bpf_object_open_opts* opts = nullptr) {
  const auto bytes_of = [](const void* (*elf_bytes)(size_t*)) {
    size_t size = 0;
    const void* bytes = elf_bytes(&size);
    return absl::MakeConstSpan(static_cast<const char*>(bytes), size);
  };
  absl::StatusOr<absl::Span<const char>> object = PickSessionObject(
      bytes_of(Skeleton::elf_bytes), bytes_of(CtxSkeleton::elf_bytes));
  if (!object.ok()) return object.status();

  // destroy() ends in free(), so this is what open() of a skeleton does, but
  // for the bytes.
  SessionSkeleton<Skeleton> skeleton(
      static_cast<Skeleton*>(std::calloc(1, sizeof(Skeleton))));
  if (skeleton == nullptr) return SessionSkeletonError(ENOMEM);
  int err = create(skeleton.get());
  if (err != 0) return SessionSkeletonError(-err);
  skeleton->skeleton->data = const_cast<char*>(object->data());
  skeleton->skeleton->data_sz = object->size();
  err = bpf_object__open_skeleton(skeleton->skeleton, opts);
  if (err != 0) return SessionSkeletonError(-err);
  return skeleton;
}

}  // namespace ksweep

#endif  // KSWEEP_SESSION_H_
