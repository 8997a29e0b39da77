#include "common/percpu.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace examples {
namespace {

// Of the elements read in one system call.
constexpr size_t kBatchBytes = size_t{8} << 20;

class Reader {
 public:
  Reader(int map_fd, uint32_t count, size_t cpus, size_t words,
         PerCpuVisitor visit)
      : map_fd_(map_fd),
        count_(count),
        cpus_(cpus),
        words_(words),
        batch_(std::clamp<size_t>(kBatchBytes / (cpus * words * 8), 1, count)),
        keys_(batch_),
        values_(batch_ * cpus * words),
        visit_(visit) {}

  // Many elements a call, since Linux 5.13 for this type of map. False if the
  // kernel does not do that; what was read so far is good.
  bool ReadBatches() {
    uint32_t position = 0;
    while (read_ < count_) {
      uint32_t got = std::min<uint32_t>(batch_, count_ - read_);
      const int err = bpf_map_lookup_batch(
          map_fd_, read_ == 0 ? nullptr : &position, &position, keys_.data(),
          values_.data(), &got, nullptr);
      // ENOENT: these are the last elements.
      if (err != 0 && err != -ENOENT) return false;
      for (uint32_t i = 0; i < got; ++i) Visit(i);
      if (err != 0 || got == 0) break;
    }
    return read_ == count_;
  }

  // One element a call.
  int ReadOneByOne() {
    while (read_ < count_) {
      if (const int err = bpf_map_lookup_elem(map_fd_, &read_, values_.data());
          err != 0) {
        return err;
      }
      Visit(0);
    }
    return 0;
  }

 private:
  // The next element, which is in that row of the values.
  void Visit(size_t row) {
    const uint32_t index = read_++;
    for (size_t cpu = 0; cpu < cpus_; ++cpu) {
      const uint64_t* value = &values_[(row * cpus_ + cpu) * words_];
      visit_(index, absl::MakeConstSpan(value, words_));
    }
  }

  int map_fd_;
  uint32_t count_;
  size_t cpus_;
  size_t words_;
  size_t batch_;
  std::vector<uint32_t> keys_;
  std::vector<uint64_t> values_;
  PerCpuVisitor visit_;
  uint32_t read_ = 0;
};

}  // namespace

absl::Status ReadPerCpu(int map_fd, uint32_t count, size_t words,
                        PerCpuVisitor visit) {
  if (count == 0) return absl::OkStatus();
  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) {
    return absl::InternalError(
        absl::StrFormat("cannot count the CPUs: %s", strerror(-cpus)));
  }
  Reader reader(map_fd, count, cpus, words, visit);
  if (reader.ReadBatches()) return absl::OkStatus();
  if (const int err = reader.ReadOneByOne(); err != 0) {
    return absl::InternalError(
        absl::StrFormat("cannot read the counts: %s", strerror(-err)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> SumPerCpu(int map_fd, uint32_t count) {
  std::vector<uint64_t> sums(count, 0);
  absl::Status status = ReadPerCpu(
      map_fd, count, 1, [&](uint32_t index, absl::Span<const uint64_t> value) {
        sums[index] += value[0];
      });
  if (!status.ok()) return status;
  return sums;
}

}  // namespace examples
