#include "selftests/bench/reference/lines.h"
#include "selftests/bench/reference/reference.h"

namespace ksweep::bench {

std::vector<Found> ReadOnly(Names, const std::string& path) {
  const UniqueFd fd = OpenOrDie(path);
  const std::unique_ptr<char[]> buffer(new char[kBufferBytes]);
  while (ReadOrDie(fd.get(), buffer.get(), kBufferBytes) != 0) {
  }
  return {};
}

std::vector<Found> ReadAndSplit(Names, const std::string& path) {
  size_t bytes = 0;
  ForEachLine(path, [&bytes](const Line& line) { bytes += line.name.size(); });
  // Something that depends on the lines, so that they are not optimised away.
  if (bytes == 0) std::fprintf(stderr, "%s: no names\n", path.c_str());
  return {};
}

}  // namespace ksweep::bench
