// What a fuzz target defines, and what it needs for that. A target is linked
// with libFuzzer, or with driver.cc as a regression test.

#ifndef KSWEEP_SELFTESTS_FUZZ_FUZZ_TARGET_H_
#define KSWEEP_SELFTESTS_FUZZ_FUZZ_TARGET_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "lib/base/unique_fd.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace ksweep {

// An input for driver.cc, good enough to get behind the first check.
std::string MakeFuzzInput(std::mt19937* rng);

// Up to `max` of `words` in any order, and some bytes between them.
inline std::string RandomWords(absl::Span<const std::string_view> words,
                               size_t max, std::mt19937* rng) {
  std::string text;
  for (size_t cnt = (*rng)() % (max + 1); cnt > 0; --cnt) {
    if ((*rng)() % 40 == 0) text += static_cast<char>((*rng)());
    text += words[(*rng)() % words.size()];
  }
  return text;
}

inline std::string_view FuzzText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Takes the text up to `separator`, or all of it, off the front of `rest`.
inline std::string_view TakePart(std::string_view* rest, char separator) {
  const size_t end = rest->find(separator);
  const std::string_view part = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  return part;
}

// Ends the program if a property does not hold.
inline void FuzzCheck(bool holds, const char* property,
                      std::string_view detail = "") {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n%.*s\n", property,
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

// A file with `text` in memory.
class MemFile {
 public:
  explicit MemFile(std::string_view text)
      : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    while (!text.empty()) {
      const ssize_t put = write(fd_.get(), text.data(), text.size());
      if (put < 0) std::abort();
      text.remove_prefix(static_cast<size_t>(put));
    }
  }
  // Opens as a file of its own, at the start.
  std::string path() const {
    return "/proc/self/fd/" + std::to_string(fd_.get());
  }

 private:
  UniqueFd fd_;
};

}  // namespace ksweep

#endif  // KSWEEP_SELFTESTS_FUZZ_FUZZ_TARGET_H_
