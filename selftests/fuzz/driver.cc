// Runs a fuzz target without a fuzzer: on the files given, else on inputs of
// its own making. They are the same in every run; number 17 alone is run by
//
//   fuzz_glob_regress '#17'
//
// and a fuzzer starts from the first hundreds of them with
//
//   fuzz_glob_regress --corpus=FOLDER

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "selftests/fuzz/fuzz_target.h"

namespace ksweep {
namespace {

constexpr int kInputs = 3000;

void RunOne(const std::string& input) {
  // Of exactly this size, so that a sanitizer sees reads outside.
  const std::unique_ptr<uint8_t[]> bytes(new uint8_t[input.size()]);
  std::memcpy(bytes.get(), input.data(), input.size());
  LLVMFuzzerTestOneInput(bytes.get(), input.size());
}

void Damage(std::string* input, std::mt19937* rng) {
  if (input->empty()) return;
  const size_t at = (*rng)() % input->size();
  const size_t cnt = (*rng)() % 20;
  switch ((*rng)() % 3) {
    case 0:
      (*input)[at] = static_cast<char>((*rng)());
      break;
    case 1:
      input->erase(at, cnt);
      break;
    default:
      input->insert((*rng)() % input->size(), input->substr(at, cnt));
  }
}

std::string MakeInput(int number) {
  std::mt19937 rng(static_cast<uint32_t>(number));
  std::string input = MakeFuzzInput(&rng);
  for (uint32_t cnt = rng() % 4; cnt > 1; --cnt) Damage(&input, &rng);
  return input;
}

int RunFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::perror(path);
    return 1;
  }
  RunOne({std::istreambuf_iterator<char>(file), {}});
  return 0;
}

int WriteCorpus(const std::string& folder) {
  constexpr int kFiles = 300;
  for (int number = 0; number < kFiles; ++number) {
    const std::string path = folder + "/made_" + std::to_string(number);
    std::ofstream file(path, std::ios::binary);
    if (!(file << MakeInput(number)).flush()) {
      std::perror(path.c_str());
      return 1;
    }
  }
  return 0;
}

int Main(int argc, char** argv) {
  constexpr std::string_view kCorpus = "--corpus=";
  if (argc == 2 &&
      std::string_view(argv[1]).substr(0, kCorpus.size()) == kCorpus) {
    return WriteCorpus(argv[1] + kCorpus.size());
  }
  int failed = 0;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '#') {
      RunOne(MakeInput(std::atoi(argv[i] + 1)));
    } else {
      failed |= RunFile(argv[i]);
    }
  }
  for (int number = 0; argc == 1 && number < kInputs; ++number) {
    // The last line tells which one ended the program.
    std::printf("#%d\n", number);
    std::fflush(stdout);
    RunOne(MakeInput(number));
  }
  return failed;
}

}  // namespace
}  // namespace ksweep

int main(int argc, char** argv) { return ksweep::Main(argc, argv); }
