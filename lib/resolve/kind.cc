#include "ksweep/kind.h"

#include <array>

namespace ksweep {
namespace {

constexpr std::array<std::string_view, kKindCnt> kNames = {
    "kprobe.multi", "kretprobe.multi", "kprobe.session", "kprobe",
    "kretprobe",    "fentry",          "fexit",          "fsession",
    "fentry.multi", "fexit.multi",     "fsession.multi",
};

}  // namespace

std::string_view KindName(Kind kind) {
  return kNames[static_cast<size_t>(kind)];
}

std::optional<Kind> ParseKind(std::string_view name) {
  for (int i = 0; i < kKindCnt; ++i) {
    if (kNames[i] == name) return static_cast<Kind>(i);
  }
  return std::nullopt;
}

}  // namespace ksweep
