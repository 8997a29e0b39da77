// BPF objects built in code, so that tests need no BPF compiler.

#ifndef KSWEEP_SELFTESTS_TESTING_BPF_ELF_H_
#define KSWEEP_SELFTESTS_TESTING_BPF_ELF_H_

#include <string>
#include <vector>

namespace ksweep {

struct BpfElfProgram {
  std::string section;  // as in SEC()
  std::string name;
};

// The bytes of an object for bpf_object__open_mem(): a program that returns 0
// for each of `programs`, and a license. No two in one section.
std::string BuildBpfElf(const std::vector<BpfElfProgram>& programs);

struct ElfSection {
  std::string name;
  std::string bytes;
};

// The bytes of an ELF file with `sections` and nothing else of interest.
std::string BuildElf(const std::vector<ElfSection>& sections);

}  // namespace ksweep

#endif  // KSWEEP_SELFTESTS_TESTING_BPF_ELF_H_
