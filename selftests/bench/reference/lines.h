// Reading and splitting, the same for all references, so that they differ in
// nothing but how they search.

#ifndef KSWEEP_SELFTESTS_BENCH_REFERENCE_LINES_H_
#define KSWEEP_SELFTESTS_BENCH_REFERENCE_LINES_H_

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/unique_fd.h"

namespace ksweep::bench {

// As large as the buffer of lib/source/line_reader.cc.
inline constexpr size_t kBufferBytes = 64 * 1024;

struct Line {
  std::string_view addr;
  char type = '?';
  std::string_view name;
  std::string_view module;  // empty: the core kernel
};

inline UniqueFd OpenOrDie(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    std::perror(path.c_str());
    std::exit(2);
  }
  return fd;
}

inline size_t ReadOrDie(int fd, char* buffer, size_t size) {
  const ssize_t got = read(fd, buffer, size);
  if (got < 0) {
    std::perror("read");
    std::exit(2);
  }
  return static_cast<size_t>(got);
}

// Columns are fixed on a 64-bit kernel. Only lines of modules end in ']'.
inline Line SplitLine(const char* begin, const char* end) {
  Line line;
  line.addr = {begin, 16};
  line.type = begin[17];
  line.name = {begin + 19, static_cast<size_t>(end - begin) - 19};
  if (line.name.back() == ']') {
    const size_t tab = std::min(line.name.find('\t'), line.name.size());
    line.module = line.name.substr(std::min(tab + 2, line.name.size()));
    line.module.remove_suffix(1);
    line.name = line.name.substr(0, tab);
  }
  return line;
}

inline bool IsFunction(const Line& line) {
  return line.type == 't' || line.type == 'T' || line.type == 'w' ||
         line.type == 'W';
}

inline uint64_t AddrOf(const Line& line) {
  uint64_t addr = 0;
  for (char c : line.addr) {
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    addr = addr << 4 | static_cast<uint64_t>(digit);
  }
  return addr;
}

// Calls visit(line) for each line; those too short to hold a name are skipped.
template <typename Visit>
void ForEachLine(const std::string& path, Visit visit) {
  constexpr ptrdiff_t kShortest = 20;
  const UniqueFd fd = OpenOrDie(path);
  const std::unique_ptr<char[]> buffer(new char[kBufferBytes]);
  size_t used = 0;
  while (const size_t got =
             ReadOrDie(fd.get(), buffer.get() + used, kBufferBytes - used)) {
    used += got;
    const char* begin = buffer.get();
    const char* const end = begin + used;
    while (const void* newline =
               std::memchr(begin, '\n', static_cast<size_t>(end - begin))) {
      const char* const line_end = static_cast<const char*>(newline);
      if (line_end - begin >= kShortest) visit(SplitLine(begin, line_end));
      begin = line_end + 1;
    }
    used = static_cast<size_t>(end - begin);
    std::memmove(buffer.get(), begin, used);
  }
}

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_REFERENCE_LINES_H_
