// Makes a dictionary from names.

#ifndef KSWEEP_LIB_INDEX_DICTIONARY_TRAINER_H_
#define KSWEEP_LIB_INDEX_DICTIONARY_TRAINER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace ksweep {

struct TrainingName {
  std::string_view name;
  uint64_t weight = 1;  // how often it occurs
};

struct TrainingEffort {
  // Pieces to choose from, and rounds of choosing.
  size_t candidates = 3 * 4096;
  int rounds = 16;
};

// The pieces that make `names` short, at most Dictionary's number of them, in
// bytewise order. The same names give the same pieces on every machine. Some
// seconds for a hundred thousand names.
std::vector<std::string> TrainDictionary(absl::Span<const TrainingName> names,
                                         const TrainingEffort& effort = {});

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_DICTIONARY_TRAINER_H_
