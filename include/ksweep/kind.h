// The ways a BPF program can be attached to a kernel function.
//
// A kind decides which functions can be targets at all: the fprobe and
// trampoline kinds need an ftrace location, a perf kprobe needs text that is
// not blacklisted. So Resolve() is told the kinds, and Attach() uses one of
// them.

#ifndef KSWEEP_KIND_H_
#define KSWEEP_KIND_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace ksweep {

enum class Kind : uint8_t {
  // One link for many functions, by address. Requires Linux 5.18
  // (CONFIG_FPROBE).
  kKprobeMulti,
  kKretprobeMulti,
  // Entry and return in one program. Requires Linux 6.10 (CONFIG_FPROBE).
  kKprobeSession,
  // One perf event per function. Any kernel with CONFIG_KPROBES.
  kKprobe,
  kKretprobe,
  // One BPF trampoline per function. Requires Linux 5.5 (fsession: 7.0).
  kFentry,
  kFexit,
  kFsession,
  // One tracing_multi link for many functions of one BTF object. Found by
  // trying; seen in Linux 7.3.
  kFentryMulti,
  kFexitMulti,
  kFsessionMulti,
};

inline constexpr int kKindCnt = 11;

// The name in the form libbpf uses for section names: "kprobe.multi", ….
std::string_view KindName(Kind kind);

// The kind of that name, or nothing.
std::optional<Kind> ParseKind(std::string_view name);

// True for the kinds that attach to ftrace locations, so that the kernel's
// filter list decides: all but kKprobe and kKretprobe.
constexpr bool NeedsFilterList(Kind kind) {
  return kind != Kind::kKprobe && kind != Kind::kKretprobe;
}

// True for the kinds that attach by BTF id.
constexpr bool NeedsBtf(Kind kind) { return kind >= Kind::kFentry; }

// A small set of kinds, a value.
class KindSet {
 public:
  constexpr KindSet() = default;
  constexpr KindSet(std::initializer_list<Kind> kinds) {
    for (Kind kind : kinds) Add(kind);
  }

  constexpr void Add(Kind kind) { bits_ |= Bit(kind); }
  constexpr void Remove(Kind kind) {
    bits_ &= static_cast<uint16_t>(~Bit(kind));
  }
  constexpr bool Has(Kind kind) const { return (bits_ & Bit(kind)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  friend constexpr bool operator==(KindSet a, KindSet b) {
    return a.bits_ == b.bits_;
  }

 private:
  static constexpr uint16_t Bit(Kind kind) {
    return static_cast<uint16_t>(1u << static_cast<unsigned>(kind));
  }

  uint16_t bits_ = 0;
};

}  // namespace ksweep

#endif  // KSWEEP_KIND_H_
