// The address of a function beside its BTF: the other idea of 2021, for callers
// that have BTF ids.

#ifndef KSWEEP_SELFTESTS_BENCH_REFERENCE_BTF_ADDRS_H_
#define KSWEEP_SELFTESTS_BENCH_REFERENCE_BTF_ADDRS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "selftests/bench/reference/name_table.h"

namespace ksweep::bench {

class BtfAddrs {
 public:
  // `btf` is /sys/kernel/btf/vmlinux. A function's address is that of the first
  // symbol that has its name.
  BtfAddrs(std::string_view btf, const NameTable& names);

  // kNoAddr if `id` is no function, or has no symbol.
  uint64_t Get(uint32_t id) const {
    return id < addrs_.size() ? addrs_[id] : kNoAddr;
  }
  const std::vector<uint32_t>& funcs() const { return funcs_; }
  // Eight for each function, as if they were a part of its type.
  uint64_t bytes() const { return funcs_.size() * sizeof(uint64_t); }

 private:
  std::vector<uint64_t> addrs_;
  std::vector<uint32_t> funcs_;
};

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_REFERENCE_BTF_ADDRS_H_
