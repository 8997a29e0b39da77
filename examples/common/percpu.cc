#include "common/percpu.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace examples {
namespace {

// Elements in one system call: with 256 CPUs, 8 MiB of numbers.
constexpr uint32_t kBatch = 4096;

class Reader {
 public:
  Reader(int map_fd, uint32_t count, size_t cpus)
      : map_fd_(map_fd), cpus_(cpus), keys_(kBatch), values_(kBatch * cpus) {
    sums_.reserve(count);
  }

  // Many elements a call, since Linux 5.13 for this type of map. False if the
  // kernel does not do that; the sums so far are good.
  bool ReadBatches(uint32_t count) {
    uint32_t position = 0;
    while (sums_.size() < count) {
      uint32_t got = std::min<uint32_t>(kBatch, count - sums_.size());
      const int err = bpf_map_lookup_batch(
          map_fd_, sums_.empty() ? nullptr : &position, &position, keys_.data(),
          values_.data(), &got, nullptr);
      // ENOENT: these are the last elements.
      if (err != 0 && err != -ENOENT) return false;
      for (uint32_t i = 0; i < got; ++i) Add(i);
      if (err != 0 || got == 0) break;
    }
    return sums_.size() == count;
  }

  // One element a call.
  int ReadOneByOne(uint32_t count) {
    for (uint32_t i = sums_.size(); i < count; ++i) {
      if (const int err = bpf_map_lookup_elem(map_fd_, &i, values_.data());
          err != 0) {
        return err;
      }
      Add(0);
    }
    return 0;
  }

  std::vector<uint64_t> TakeSums() { return std::move(sums_); }

 private:
  void Add(size_t row) {
    const auto begin = values_.begin() + row * cpus_;
    sums_.push_back(std::accumulate(begin, begin + cpus_, uint64_t{0}));
  }

  int map_fd_;
  size_t cpus_;
  std::vector<uint32_t> keys_;
  std::vector<uint64_t> values_;
  std::vector<uint64_t> sums_;
};

}  // namespace

absl::StatusOr<std::vector<uint64_t>> SumPerCpu(int map_fd, uint32_t count) {
  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) {
    return absl::InternalError(
        absl::StrFormat("cannot count the CPUs: %s", strerror(-cpus)));
  }
  Reader reader(map_fd, count, cpus);
  if (!reader.ReadBatches(count)) {
    if (const int err = reader.ReadOneByOne(count); err != 0) {
      return absl::InternalError(
          absl::StrFormat("cannot read the counts: %s", strerror(-err)));
    }
  }
  return reader.TakeSums();
}

}  // namespace examples
