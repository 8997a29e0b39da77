#include "lib/index/locator.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace ksweep {
namespace {

constexpr double kNamesPerBucket = 3.0;
constexpr int kPilots = 256;
// Tried one after the other: less free space is less memory, and takes longer
// or for ever.
constexpr double kLoads[] = {0.98, 0.98, 0.98, 0.95, 0.90, 0.80, 0.50};
// One name in 70 is evicted where it works, but now and then it never ends.
uint64_t MaxEvictions(uint64_t names) { return names / 8 + 1000; }
// Of absent names one in so many is compared with another name, at most.
constexpr uint64_t kLeastFingerprints = 8;

// A deterministic source of numbers, so that the same names make the same file.
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return HashWord(state_);
  }

 private:
  uint64_t state_;
};

class Placement {
 public:
  Placement(absl::Span<const uint64_t> hashes, uint32_t buckets, uint32_t slots)
      : hashes_(hashes),
        starts_(buckets + 1),
        members_(hashes.size()),
        pilots_(buckets),
        owners_(slots, kFree),
        rng_(hashes.size()) {
    Group();
  }

  // False if it gave up.
  bool Run();

  absl::Span<const uint8_t> pilots() const { return pilots_; }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;

  void Group();
  absl::Span<const uint64_t> HashesOf(uint32_t bucket) const {
    return absl::MakeSpan(members_).subspan(
        starts_[bucket], starts_[bucket + 1] - starts_[bucket]);
  }
  uint32_t SizeOf(uint32_t bucket) const {
    return starts_[bucket + 1] - starts_[bucket];
  }
  uint32_t SlotOf(uint64_t hash, uint8_t pilot) const {
    return static_cast<uint32_t>(
        Locator::MulHigh(Locator::Scatter(hash, pilot), owners_.size()));
  }
  bool Place(uint32_t bucket);
  std::optional<uint64_t> CostOf(uint32_t bucket, uint8_t pilot,
                                 uint64_t limit);
  void Evict(uint32_t bucket);
  void Take(uint32_t bucket, uint8_t pilot);

  absl::Span<const uint64_t> hashes_;
  std::vector<uint32_t> starts_;
  std::vector<uint64_t> members_;  // hashes by bucket
  std::vector<uint8_t> pilots_;
  std::vector<uint32_t> owners_;  // the bucket that has a slot
  std::vector<uint32_t> waiting_;
  std::vector<uint32_t> tried_;  // scratch: slots of one pilot
  uint64_t evictions_ = 0;
  Rng rng_;
};

void Placement::Group() {
  const uint64_t buckets = pilots_.size();
  const auto bucket_of = [buckets](uint64_t hash) {
    return Locator::MulHigh(hash, buckets);
  };
  for (uint64_t hash : hashes_) ++starts_[bucket_of(hash) + 1];
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  std::vector<uint32_t> next(starts_.begin(), starts_.end() - 1);
  for (uint64_t hash : hashes_) members_[next[bucket_of(hash)]++] = hash;
}

// What it costs to put `bucket` where `pilot` says: 0 if all slots are free,
// else the squared sizes of the buckets in the way. Nothing if two of its own
// names meet, or at `limit`.
std::optional<uint64_t> Placement::CostOf(uint32_t bucket, uint8_t pilot,
                                          uint64_t limit) {
  uint64_t cost = 0;
  tried_.clear();
  for (uint64_t hash : HashesOf(bucket)) {
    const uint32_t slot = SlotOf(hash, pilot);
    if (std::find(tried_.begin(), tried_.end(), slot) != tried_.end()) {
      return std::nullopt;
    }
    tried_.push_back(slot);
    if (owners_[slot] == kFree) continue;
    const uint64_t size = SizeOf(owners_[slot]);
    cost += size * size;
    if (cost >= limit) return std::nullopt;
  }
  return cost;
}

void Placement::Evict(uint32_t bucket) {
  for (uint64_t hash : HashesOf(bucket)) {
    owners_[SlotOf(hash, pilots_[bucket])] = kFree;
  }
  waiting_.push_back(bucket);
  evictions_ += SizeOf(bucket);
}

void Placement::Take(uint32_t bucket, uint8_t pilot) {
  for (uint64_t hash : HashesOf(bucket)) {
    const uint32_t slot = SlotOf(hash, pilot);
    if (owners_[slot] != kFree) Evict(owners_[slot]);
    owners_[slot] = bucket;
  }
  pilots_[bucket] = pilot;
}

bool Placement::Place(uint32_t bucket) {
  const auto first = static_cast<uint8_t>(rng_.Next());
  uint64_t least = UINT64_MAX;
  uint8_t best = 0;
  for (int i = 0; i < kPilots && least > 0; ++i) {
    const auto pilot = static_cast<uint8_t>(first + i);
    const std::optional<uint64_t> cost = CostOf(bucket, pilot, least);
    if (!cost.has_value()) continue;
    least = *cost;
    best = pilot;
  }
  if (least == UINT64_MAX) return false;
  Take(bucket, best);
  return true;
}

bool Placement::Run() {
  std::vector<uint32_t> order(pilots_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
    return SizeOf(a) > SizeOf(b);
  });
  for (uint32_t bucket : order) {
    if (SizeOf(bucket) == 0) break;
    waiting_.push_back(bucket);
    while (!waiting_.empty()) {
      const uint32_t next = waiting_.back();
      waiting_.pop_back();
      if (!Place(next)) return false;
      if (evictions_ > MaxEvictions(hashes_.size())) return false;
    }
  }
  return true;
}

bool HasEqual(std::vector<uint64_t> hashes) {
  std::sort(hashes.begin(), hashes.end());
  return std::adjacent_find(hashes.begin(), hashes.end()) != hashes.end();
}

std::vector<uint64_t> HashAll(absl::Span<const std::string_view> names,
                              uint64_t seed) {
  const HashKeys keys(seed);
  std::vector<uint64_t> hashes;
  hashes.reserve(names.size());
  for (std::string_view name : names) hashes.push_back(KeyedHash(name, keys));
  return hashes;
}

uint8_t SlotBitsFor(uint32_t none) {
  unsigned bits = BitsFor(none);
  while (FingerprintCnt(bits, none) < kLeastFingerprints) ++bits;
  return static_cast<uint8_t>(bits);
}

LocatorBytes Pack(const LocatorShape& shape, absl::Span<const uint8_t> pilots,
                  absl::Span<const uint64_t> hashes,
                  absl::Span<const uint32_t> values) {
  LocatorBytes bytes;
  bytes.shape = shape;
  bytes.pilots.assign(pilots.begin(), pilots.end());
  const uint64_t fingerprints = FingerprintCnt(shape.slot_bits, shape.none);
  std::vector<uint64_t> slots(shape.slots, PackedMask(shape.slot_bits));
  for (size_t i = 0; i < hashes.size(); ++i) {
    const uint8_t pilot = pilots[Locator::MulHigh(hashes[i], shape.buckets)];
    slots[Locator::MulHigh(Locator::Scatter(hashes[i], pilot), shape.slots)] =
        Locator::FingerprintOf(hashes[i], fingerprints) * shape.none +
        values[i];
  }
  bytes.slots = PackArray(slots, shape.slot_bits);
  return bytes;
}

}  // namespace

absl::StatusOr<Locator> Locator::Make(const LocatorShape& shape,
                                      std::string_view pilots,
                                      std::string_view slots) {
  const bool consistent =
      pilots.size() == shape.buckets && (shape.slots == 0 || shape.buckets > 0);
  if (!consistent || shape.slot_bits < 1 || shape.slot_bits > kMaxPackedBits ||
      slots.size() != PackedBytes(shape.slots, shape.slot_bits)) {
    return absl::DataLossError("the locator's sizes do not fit its shape");
  }
  Locator locator;
  locator.shape_ = shape;
  locator.keys_ = HashKeys(shape.seed);
  locator.slot_mask_ = PackedMask(shape.slot_bits);
  locator.fingerprints_ = FingerprintCnt(shape.slot_bits, shape.none);
  locator.pilots_ = pilots.data();
  locator.slots_ = slots.data();
  return locator;
}

absl::StatusOr<LocatorBytes> BuildLocator(
    absl::Span<const std::string_view> names, absl::Span<const uint32_t> values,
    uint32_t none) {
  LocatorShape shape;
  shape.none = none;
  shape.slot_bits = SlotBitsFor(none);
  if (names.empty()) return Pack(shape, {}, {}, {});
  const auto cnt = static_cast<double>(names.size());
  shape.buckets = static_cast<uint32_t>(cnt / kNamesPerBucket) + 1;
  for (double load : kLoads) {
    ++shape.seed;
    shape.slots = static_cast<uint32_t>(cnt / load) + 1;
    const std::vector<uint64_t> hashes = HashAll(names, shape.seed);
    // Two names with one hash cannot be told apart.
    if (HasEqual(hashes)) continue;
    Placement placement(hashes, shape.buckets, shape.slots);
    if (!placement.Run()) continue;
    return Pack(shape, placement.pilots(), hashes, values);
  }
  return absl::InternalError("no perfect hash found for the names");
}

}  // namespace ksweep
