#include "selftests/bench/reference/btf_addrs.h"

#include <bpf/btf.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace ksweep::bench {

BtfAddrs::BtfAddrs(std::string_view btf, const NameTable& names) {
  const std::unique_ptr<struct btf, decltype(&btf__free)> types(
      btf__new(btf.data(), static_cast<uint32_t>(btf.size())), &btf__free);
  if (types == nullptr) {
    std::perror("BTF");
    std::exit(2);
  }
  addrs_.resize(btf__type_cnt(types.get()), kNoAddr);
  for (uint32_t id = 1; id < addrs_.size(); ++id) {
    const btf_type* const type = btf__type_by_id(types.get(), id);
    if (!btf_is_func(type)) continue;
    const std::string_view name =
        btf__name_by_offset(types.get(), type->name_off);
    names.Find({&name, 1}, &addrs_[id]);
    funcs_.push_back(id);
  }
}

}  // namespace ksweep::bench
