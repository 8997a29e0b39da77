#include <cinttypes>

#include "selftests/bench/reference/lines.h"
#include "selftests/bench/reference/reference.h"

namespace ksweep::bench {
namespace {

void ScanFor(std::string_view name, uint32_t wanted, const std::string& path,
             std::vector<Found>* found) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) {
    std::perror(path.c_str());
    std::exit(2);
  }
  char text[1024];
  while (std::fgets(text, sizeof(text), file) != nullptr) {
    uint64_t addr = 0;
    char type = '?';
    char symbol[512];
    if (std::sscanf(text, "%" SCNx64 " %c %511s", &addr, &type, symbol) != 3) {
      continue;
    }
    if (symbol != name) continue;
    Line line;
    line.type = type;
    found->push_back({wanted, IsFunction(line), addr});
  }
  std::fclose(file);
}

}  // namespace

std::vector<Found> FindByRescan(Names names, const std::string& path) {
  std::vector<Found> found;
  for (uint32_t i = 0; i < names.size(); ++i) {
    ScanFor(names[i], i, path, &found);
  }
  return found;
}

}  // namespace ksweep::bench
