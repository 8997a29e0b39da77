// From a name to the one record that may have it: a minimal-like perfect hash
// whose buckets each have a pilot, the number that scatters their names over
// free slots. A slot holds the name's value and a fingerprint of it as one
// number, fingerprint * none + value: who takes away what the fingerprint of
// another name makes of it is left with no value, but for one name in eight to
// sixteen. About 27 bits a name for the whole of it, two reads a lookup.

#ifndef KSWEEP_LIB_INDEX_LOCATOR_H_
#define KSWEEP_LIB_INDEX_LOCATOR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/hash.h"
#include "lib/index/keyed_hash.h"
#include "lib/index/packed_array.h"

namespace ksweep {

struct LocatorShape {
  uint64_t seed = 0;
  uint32_t buckets = 0;
  uint32_t slots = 0;  // a power of two is not needed
  uint8_t slot_bits = 1;
  // Values are below it.
  uint32_t none = 0;
};

// Different ones in slots of so many bits. Free slots hold the highest number,
// which is that of no value and fingerprint. 0 if the bits do not suffice.
inline uint64_t FingerprintCnt(unsigned slot_bits, uint32_t none) {
  return PackedMask(slot_bits) / (none == 0 ? 1 : none);
}

// Does not own its bytes.
class Locator {
 public:
  // A locator without names.
  Locator() = default;

  // DataLoss if the sizes do not fit the shape. Reads nothing but them.
  static absl::StatusOr<Locator> Make(const LocatorShape& shape,
                                      std::string_view pilots,
                                      std::string_view slots);

  const HashKeys& keys() const { return keys_; }
  uint32_t none() const { return shape_.none; }

  // The steps of a lookup, apart so that others can go on while memory is
  // fetched. `hash` is that of the name with keys(). Not of empty ones.
  const char* PilotOf(uint64_t hash) const {
    return pilots_ + MulHigh(hash, shape_.buckets);
  }
  uint64_t SlotOf(uint64_t hash, uint8_t pilot) const {
    return MulHigh(Scatter(hash, pilot), shape_.slots);
  }
  const char* SlotBytes(uint64_t slot) const {
    return slots_ + slot * shape_.slot_bits / 8;
  }
  uint64_t ValueAt(uint64_t slot, uint64_t hash) const {
    const uint64_t bit = slot * shape_.slot_bits;
    const uint64_t number =
        LoadLe<uint64_t>(slots_ + bit / 8) >> bit % 8 & slot_mask_;
    return number - FingerprintOf(hash, fingerprints_) * shape_.none;
  }

  // The value of the name with this hash. For one that the locator was not made
  // with any value, or any number that is not below none().
  uint64_t Lookup(uint64_t hash) const {
    if (shape_.slots == 0) return shape_.none;
    return ValueAt(SlotOf(hash, static_cast<uint8_t>(*PilotOf(hash))), hash);
  }

  bool empty() const { return shape_.slots == 0; }

  static uint64_t MulHigh(uint64_t a, uint64_t b) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
  }
  static uint64_t Scatter(uint64_t hash, uint8_t pilot) {
    return (hash ^ (pilot + uint64_t{1}) * kHash0) * kHash1;
  }
  // Below `cnt`, of at most 32 bits.
  static uint64_t FingerprintOf(uint64_t hash, uint64_t cnt) {
    return (hash & UINT32_MAX) * cnt >> 32;
  }

 private:
  LocatorShape shape_;
  HashKeys keys_;
  uint64_t slot_mask_ = 0;
  uint64_t fingerprints_ = 0;
  const char* pilots_ = nullptr;
  const char* slots_ = nullptr;
};

struct LocatorBytes {
  LocatorShape shape;
  std::string pilots;
  std::string slots;
};

// For distinct names and a value for each, below `none`. Internal if no seed
// works, which distinct names cannot bring about.
absl::StatusOr<LocatorBytes> BuildLocator(
    absl::Span<const std::string_view> names, absl::Span<const uint32_t> values,
    uint32_t none);

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_LOCATOR_H_
