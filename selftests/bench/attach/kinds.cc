#include "selftests/bench/attach/kinds.h"

namespace ksweep::bench {

std::string KindsText(Kinds kinds) {
  std::string text;
  for (const Kind kind : kinds) {
    if (!text.empty()) text += " and ";
    text += KindName(kind);
  }
  return text;
}

KindSet SetOf(Kinds kinds) {
  KindSet set;
  for (const Kind kind : kinds) set.Add(kind);
  return set;
}

std::vector<KindProgram> ProgramsFor(Kinds kinds, const bpf_program* prog) {
  std::vector<KindProgram> programs;
  for (const Kind kind : kinds) programs.push_back({kind, prog});
  return programs;
}

}  // namespace ksweep::bench
