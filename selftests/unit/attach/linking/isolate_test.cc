#include "lib/attach/linking/isolate.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ksweep/status.h"
#include "lib/base/errno_status.h"
#include "selftests/testing/fake_bpf.h"

namespace ksweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// Refuses sets with one of the refused slots in it, with the errno of the
// first, and keeps a record.
class FakeLinkMaker : public LinkMaker {
 public:
  absl::StatusOr<Link> MakeLink(absl::Span<const uint32_t> slots) override {
    EXPECT_TRUE(std::is_sorted(slots.begin(), slots.end()));
    EXPECT_FALSE(slots.empty());
    EXPECT_EQ(CountOpenLinks(), kept.size());
    const auto failure = fail_call.find(calls++);
    if (failure != fail_call.end()) return Error(failure->second);
    for (uint32_t slot : slots) {
      const auto refusal = refusals.find(slot);
      if (refusal != refusals.end()) return Error(refusal->second);
    }
    if (slots.size() >= enomem_cnt) return Error(ENOMEM);
    if (call_err != 0) return Error(call_err);
    last.assign(slots.begin(), slots.end());
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0) std::abort();
    fds.push_back(fd);
    return Link(fd);
  }

  bool IsTrusted(uint32_t slot) const override {
    return !untrusted.contains(slot);
  }

  void Keep(Link link, absl::Span<const uint32_t> slots) override {
    EXPECT_EQ(std::vector<uint32_t>(slots.begin(), slots.end()), last);
    links.push_back(std::move(link));
    kept.push_back(last);
  }

  absl::Status Refuse(uint32_t slot, int err) override {
    EXPECT_TRUE(refused.emplace(slot, err).second) << slot;
    return refused.size() > max_refused ? ErrnoStatus(err, "too many")
                                        : absl::OkStatus();
  }

  std::vector<uint32_t> KeptSlots() const {
    std::vector<uint32_t> slots;
    for (const std::vector<uint32_t>& link : kept) {
      slots.insert(slots.end(), link.begin(), link.end());
    }
    return slots;
  }

  std::map<uint32_t, int> refusals;
  std::map<uint32_t, int> fail_call;  // errno by number of the call
  std::set<uint32_t> untrusted;
  size_t enomem_cnt = SIZE_MAX;
  size_t max_refused = SIZE_MAX;
  int call_err = 0;

  uint32_t calls = 0;
  std::vector<Link> links;
  std::vector<std::vector<uint32_t>> kept;
  std::map<uint32_t, int> refused;

 private:
  // Links made and still open, without asking the system for all descriptors.
  size_t CountOpenLinks() {
    std::erase_if(fds, [](int fd) { return fcntl(fd, F_GETFD) < 0; });
    std::sort(fds.begin(), fds.end());
    fds.erase(std::unique(fds.begin(), fds.end()), fds.end());
    return fds.size();
  }

  static absl::Status Error(int err) { return ErrnoStatus(err, "link"); }

  std::vector<uint32_t> last;
  std::vector<int> fds;
};

std::vector<uint32_t> Slots(size_t cnt) {
  std::vector<uint32_t> slots(cnt);
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

std::vector<uint32_t> Without(size_t cnt, const std::set<uint32_t>& refused) {
  std::vector<uint32_t> slots = Slots(cnt);
  std::erase_if(slots, [&](uint32_t slot) { return refused.contains(slot); });
  return slots;
}

uint32_t MaxCalls(size_t n, size_t k) {
  if (k == 0) return 1;
  const size_t ratio = (n + k - 1) / k;
  const size_t log2 = static_cast<size_t>(std::bit_width(ratio - 1));
  return static_cast<uint32_t>(2 * k * (log2 + 1) + 3);
}

// Isolates `refused` of `n`: exactly these, the rest in one link, within the
// bound.
void ExpectIsolated(size_t n, const std::set<uint32_t>& refused) {
  FakeLinkMaker maker;
  for (uint32_t slot : refused) maker.refusals[slot] = ENOENT;
  const absl::Status status = LinkAccepted(maker, Slots(n), n);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(maker.refused, maker.refusals);
  EXPECT_EQ(maker.kept.size(), 1u);
  EXPECT_EQ(maker.KeptSlots(), Without(n, refused));
  EXPECT_LE(maker.calls, MaxCalls(n, refused.size()))
      << refused.size() << " of " << n << ", first " << *refused.begin();
}

TEST(Isolate, TheBound) {
  EXPECT_EQ(MaxCalls(128, 1), 19u);
  EXPECT_EQ(MaxCalls(128, 2), 31u);
  EXPECT_EQ(MaxCalls(129, 1), 21u);
  EXPECT_EQ(MaxCalls(50000, 17), 445u);
  EXPECT_EQ(MaxCalls(50000, 1000), 14003u);
}

TEST(Isolate, NothingRefusedIsOneCall) {
  for (size_t n : {1, 2, 100, 50000}) {
    FakeLinkMaker maker;
    EXPECT_TRUE(LinkAccepted(maker, Slots(n), n).ok());
    EXPECT_EQ(maker.calls, 1u);
    EXPECT_EQ(maker.KeptSlots(), Slots(n));
  }
}

TEST(Isolate, NoSlots) {
  FakeLinkMaker maker;
  EXPECT_TRUE(LinkAccepted(maker, {}, 10).ok());
  EXPECT_EQ(maker.calls, 0u);
}

TEST(Isolate, BugCase56_TwoOf128) {
  for (int err : {EINVAL, ENOENT}) {
    FakeLinkMaker maker;
    maker.refusals = {{17, err}, {90, err}};
    ASSERT_TRUE(LinkAccepted(maker, Slots(128), 128).ok());
    EXPECT_THAT(maker.refused, ElementsAre(Pair(17, err), Pair(90, err)));
    EXPECT_EQ(maker.KeptSlots(), Without(128, {17, 90}));
    EXPECT_EQ(maker.kept.size(), 1u);
    // The whole, one alone, and the rest twice; the others looked for them.
    EXPECT_LE(maker.calls, 4 + 2 * 7 + 2u);
  }
}

struct Place {
  const char* name;
  uint32_t (*at)(uint32_t i, uint32_t k, uint32_t n);
};

constexpr Place kPlaces[] = {
    {"first", [](uint32_t i, uint32_t, uint32_t) { return i; }},
    {"last", [](uint32_t i, uint32_t k, uint32_t n) { return n - k + i; }},
    {"adjacent",
     [](uint32_t i, uint32_t k, uint32_t n) { return (n - k) / 3 + i; }},
    {"alternate", [](uint32_t i, uint32_t, uint32_t) { return 2 * i; }},
    {"alternate, odd",
     [](uint32_t i, uint32_t, uint32_t) { return 2 * i + 1; }},
    {"even",
     [](uint32_t i, uint32_t k, uint32_t n) { return (i + 1) * (n / k) - 1; }},
};

TEST(Isolate, ChosenPlaces) {
  for (uint32_t n : {2000u, 4096u, 50000u}) {
    for (uint32_t k : {1u, 2u, 17u, 1000u}) {
      for (const Place& place : kPlaces) {
        std::set<uint32_t> refused;
        for (uint32_t i = 0; i < k; ++i) refused.insert(place.at(i, k, n));
        ASSERT_EQ(refused.size(), k);
        SCOPED_TRACE(place.name);
        ExpectIsolated(n, refused);
      }
    }
  }
}

TEST(Isolate, RandomPlaces) {
  std::mt19937 random(1);
  for (uint32_t n : {50u, 1999u, 50000u}) {
    for (uint32_t k : {1u, 2u, 17u, 1000u}) {
      if (k >= n) continue;
      for (int round = 0; round < 10; ++round) {
        std::set<uint32_t> refused;
        while (refused.size() < k) refused.insert(random() % n);
        ExpectIsolated(n, refused);
      }
    }
  }
}

// Every set of refused slots that leaves one.
TEST(Isolate, AllSubsets) {
  for (uint32_t n = 2; n <= 10; ++n) {
    for (uint32_t bits = 1; bits + 1 < (1u << n); ++bits) {
      std::set<uint32_t> refused;
      for (uint32_t i = 0; i < n; ++i) {
        if ((bits >> i & 1) != 0) refused.insert(i);
      }
      ExpectIsolated(n, refused);
    }
  }
}

// Gaps that are hard for a search that doubles: just under a power of two, in
// all mixes.
TEST(Isolate, HardPlaces) {
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    const uint32_t n = 1u << (4 + random() % 8);
    const uint32_t gaps[] = {1u << random() % 8, 1u << random() % 4, 1};
    const uint32_t mix = 1 + random() % 3;
    std::set<uint32_t> refused;
    for (uint32_t at = gaps[0] - 1; at < n; at += gaps[random() % mix]) {
      refused.insert(at);
    }
    if (refused.empty() || refused.size() >= n) continue;
    if (refused.size() > n / 2) continue;  // maybe no probe is accepted
    ExpectIsolated(n, refused);
  }
}

TEST(Isolate, EachSlotHasItsOwnErrno) {
  constexpr int kErrnos[] = {EINVAL, ENOENT,        ESRCH,
                             EBUSY,  EADDRNOTAVAIL, EILSEQ};
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    FakeLinkMaker maker;
    const uint32_t n = 30 + random() % 1000;
    const uint32_t k = 1 + random() % 20;
    for (uint32_t i = 0; i < k; ++i) {
      maker.refusals[random() % n] = kErrnos[random() % 6];
    }
    ASSERT_TRUE(LinkAccepted(maker, Slots(n), n).ok());
    ASSERT_EQ(maker.refused, maker.refusals);
  }
}

TEST(Isolate, SlotsNeedNotBeInARow) {
  FakeLinkMaker maker;
  maker.refusals = {{7, EINVAL}, {4000000000, EINVAL}};
  ASSERT_TRUE(LinkAccepted(maker, {3, 7, 90, 4000000000, 4000000001}, 10).ok());
  EXPECT_EQ(maker.refused, maker.refusals);
  EXPECT_THAT(maker.KeptSlots(), ElementsAre(3, 90, 4000000001));
}

// The rest fills as few links as there can be.
TEST(Isolate, SeveralLinks) {
  for (size_t max_per_link : {1, 2, 7, 30, 99, 1000}) {
    FakeLinkMaker maker;
    for (uint32_t slot : {0, 1, 2, 50, 98, 99}) maker.refusals[slot] = EINVAL;
    ASSERT_TRUE(LinkAccepted(maker, Slots(100), max_per_link).ok());
    EXPECT_EQ(maker.refused, maker.refusals);
    EXPECT_EQ(maker.KeptSlots(), Without(100, {0, 1, 2, 50, 98, 99}));
    EXPECT_EQ(maker.kept.size(), (94 + max_per_link - 1) / max_per_link);
    for (const auto& link : maker.kept) EXPECT_LE(link.size(), max_per_link);
  }
}

TEST(Isolate, AllRefusedIsTheCall) {
  for (int err : {EINVAL, ENOENT, ESRCH}) {
    for (size_t n : {1, 2, 16, 17, 50000}) {
      FakeLinkMaker maker;
      maker.call_err = err;
      const absl::Status status = LinkAccepted(maker, Slots(n), n);
      EXPECT_EQ(ErrnoOf(status), err);
      EXPECT_EQ(maker.calls, n == 1 ? 1 : 1 + std::min(n, kMaxProbes));
      EXPECT_THAT(maker.refused, IsEmpty());
      if (n == 1) continue;
      EXPECT_THAT(std::string(status.message()), HasSubstr("alone"));
    }
  }
}

TEST(Isolate, ProbesAreTrustedSlotsIfThereAreAny) {
  FakeLinkMaker maker;
  // Of these, most are refused.
  for (uint32_t i = 0; i < 1000; ++i) {
    if (i % 3 == 0) continue;
    maker.untrusted.insert(i);
    maker.refusals[i] = EINVAL;
  }
  ASSERT_TRUE(LinkAccepted(maker, Slots(1000), 1000).ok());
  EXPECT_EQ(maker.refused, maker.refusals);
}

TEST(Isolate, OtherErrnosEndItAtOnce) {
  for (int err : {EMFILE, ENFILE, EPERM, EACCES, EOPNOTSUPP, kKernelEnotsupp,
                  E2BIG, EFAULT, ENODEV, EBADF, ENOSYS, EINTR, 4095}) {
    FakeLinkMaker maker;
    maker.call_err = err;
    EXPECT_EQ(ErrnoOf(LinkAccepted(maker, Slots(100), 100)), err);
    EXPECT_EQ(maker.calls, 1u) << err;
    EXPECT_EQ(FaultOf(err), Fault::kCall);
  }
}

// Fails at call `step`, if it comes to that; returns the calls.
uint32_t FailAtStep(uint32_t step, int err) {
  const size_t fds_before = CountOpenFds();
  FakeLinkMaker maker;
  maker.refusals = {{3, EINVAL}, {40, EINVAL}, {41, EINVAL}};
  maker.fail_call[step] = err;
  const absl::Status status = LinkAccepted(maker, Slots(100), 30);
  EXPECT_EQ(ErrnoOf(status), maker.calls > step ? err : 0);
  EXPECT_EQ(CountOpenFds() - fds_before, maker.kept.size());
  maker.links.clear();
  EXPECT_EQ(CountOpenFds(), fds_before);
  return maker.calls;
}

TEST(Isolate, AFailureAtEachStepEndsIt) {
  const uint32_t steps = FailAtStep(UINT32_MAX, 0);
  EXPECT_GT(steps, 15u);
  for (int err : {EMFILE, EFAULT}) {
    for (uint32_t step = 0; step < steps; ++step) {
      EXPECT_EQ(FailAtStep(step, err), step + 1);
    }
  }
}

TEST(Isolate, HalvesWhileThereIsNoMemory) {
  FakeLinkMaker maker;
  maker.enomem_cnt = 300;
  ASSERT_TRUE(LinkAccepted(maker, Slots(2048), 2048).ok());
  EXPECT_EQ(maker.kept.size(), 8u);
  EXPECT_EQ(maker.calls, 3 + 8u);
  EXPECT_EQ(maker.KeptSlots(), Slots(2048));
}

// The kernel looks at the functions first.
TEST(Isolate, HalvesWhileIsolating) {
  for (size_t enomem_cnt : {2, 3, 10, 100, 1000, 2000}) {
    FakeLinkMaker maker;
    maker.enomem_cnt = enomem_cnt;
    for (uint32_t slot : {0, 700, 701, 2047}) maker.refusals[slot] = ENOENT;
    ASSERT_TRUE(LinkAccepted(maker, Slots(2048), 2048).ok());
    EXPECT_EQ(maker.refused, maker.refusals);
    EXPECT_EQ(maker.KeptSlots(), Without(2048, {0, 700, 701, 2047}));
  }
}

TEST(Isolate, NoMemoryAtAllEnds) {
  FakeLinkMaker maker;
  maker.enomem_cnt = 1;
  EXPECT_EQ(ErrnoOf(LinkAccepted(maker, Slots(1024), 1024)), ENOMEM);
  EXPECT_EQ(maker.calls, 11u);
}

TEST(Isolate, RefuseEndsIt) {
  for (size_t max_refused : {0, 1, 5}) {
    FakeLinkMaker maker;
    for (uint32_t slot = 10; slot < 30; ++slot) maker.refusals[slot] = EINVAL;
    maker.max_refused = max_refused;
    const absl::Status status = LinkAccepted(maker, Slots(1000), 1000);
    EXPECT_THAT(std::string(status.message()), HasSubstr("too many"));
    EXPECT_EQ(maker.refused.size(), max_refused + 1);
  }
}

// Accepted in parts and refused as a whole, for ever: as a kernel would be that
// unloads a module in between.
class FickleLinkMaker : public FakeLinkMaker {
 public:
  absl::StatusOr<Link> MakeLink(absl::Span<const uint32_t> slots) override {
    if (slots.size() > 3) return ErrnoStatus(EINVAL, "more than 3");
    return FakeLinkMaker::MakeLink(slots);
  }
};

TEST(Isolate, EndsWithAFickleKernel) {
  FickleLinkMaker maker;
  const absl::Status status = LinkAccepted(maker, Slots(8), 8);
  // What it ends with does not matter.
  EXPECT_LT(maker.calls, 100u);
  EXPECT_EQ(maker.refused.size() + maker.KeptSlots().size(),
            status.ok() ? 8u : maker.refused.size());
}

// With a program that was linked before it is the functions, all of them too.
TEST(LinkAccepted, AllAreRefusedOfACallThatWorks) {
  for (const size_t n : {1, 2, 16, 40}) {
    FakeLinkMaker maker;
    for (uint32_t slot : Slots(n)) maker.refusals[slot] = ENOENT;
    const absl::Status status = LinkAccepted(maker, Slots(n), n, true);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(maker.refused.size(), n);
    EXPECT_THAT(maker.kept, IsEmpty());
    EXPECT_LE(maker.calls, MaxCalls(n, n));
  }
}

}  // namespace
}  // namespace ksweep
