// A symbol on its way into an index.

#ifndef KSWEEP_LIB_INDEX_ROW_H_
#define KSWEEP_LIB_INDEX_ROW_H_

#include <cstdint>
#include <string_view>

namespace ksweep {

struct Row {
  uint64_t addr = 0;
  std::string_view name;
  uint32_t owner = 0;
  uint32_t segment = 0;  // see segment.h
  char type = '?';
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_ROW_H_
