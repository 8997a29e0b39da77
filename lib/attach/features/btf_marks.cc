#include "lib/attach/features/btf_marks.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <memory>

namespace ksweep {
namespace {

struct FreeBtf {
  void operator()(btf* loaded) const { btf__free(loaded); }
};
using Btf = std::unique_ptr<btf, FreeBtf>;

uint32_t IdOf(const Btf& loaded, const char* name, uint32_t kind) {
  const int id = btf__find_by_name_kind(loaded.get(), name, kind);
  return id < 0 ? 0 : static_cast<uint32_t>(id);
}

}  // namespace

BtfMarks ReadBtfMarks(const KernelFiles& files) {
  BtfMarks marks;
  marks.path = files.root();
  if (marks.path.back() != '/') marks.path += '/';
  marks.path += "sys/kernel/btf/vmlinux";
  const Btf loaded(btf__parse_raw(marks.path.c_str()));
  const long err = libbpf_get_error(loaded.get());
  if (err != 0) {
    marks.err = static_cast<int>(-err);
    return marks;
  }
  // In net/bpf/test_run.c; the second is in 6.12 and not in 6.1.
  marks.one_arg_id = IdOf(loaded, "bpf_fentry_test1", BTF_KIND_FUNC);
  marks.seven_args_id = IdOf(loaded, "bpf_modify_return_test2", BTF_KIND_FUNC);
  marks.has_kprobe_multi =
      IdOf(loaded, "bpf_kprobe_multi_link", BTF_KIND_STRUCT) != 0;
  marks.has_session = IdOf(loaded, "bpf_session_is_return", BTF_KIND_FUNC) != 0;
  marks.has_tracing_multi =
      IdOf(loaded, "bpf_tracing_multi_link", BTF_KIND_STRUCT) != 0;
  return marks;
}

}  // namespace ksweep
