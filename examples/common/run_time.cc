#include "common/run_time.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

namespace examples {

RunTimeMeter::RunTimeMeter() : fd_(bpf_enable_stats(BPF_STATS_RUN_TIME)) {}

RunTimeMeter::~RunTimeMeter() {
  if (fd_ >= 0) close(fd_);
}

RunTime RunTimeMeter::Read(absl::Span<const ksweep::KindProgram> programs) {
  RunTime sum;
  for (const ksweep::KindProgram& program : programs) {
    bpf_prog_info info = {};
    uint32_t size = sizeof(info);
    const int fd = bpf_program__fd(program.prog);
    if (bpf_obj_get_info_by_fd(fd, &info, &size) != 0) continue;
    sum.runs += info.run_cnt;
    sum.ns += info.run_time_ns;
  }
  return sum;
}

}  // namespace examples
