#include "lib/base/perf_sys.h"

#include <dirent.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace ksweep {
namespace {

template <typename Result>
int ResultOrErrno(Result result) {
  return result < 0 ? -errno : static_cast<int>(result);
}

class KernelPerfSys : public PerfSys {
 public:
  int OpenEvent(perf_event_attr* attr) override {
    constexpr int kAllProcesses = -1, kNoGroup = -1;
    return ResultOrErrno(syscall(SYS_perf_event_open, attr, kAllProcesses,
                                 sched_getcpu(), kNoGroup,
                                 PERF_FLAG_FD_CLOEXEC));
  }

  int Ioctl(int fd, unsigned long request, unsigned long arg) override {
    return ResultOrErrno(ioctl(fd, request, arg));
  }

  int GetFdLimit(FdLimit* limit) override {
    rlimit now = {};
    if (getrlimit(RLIMIT_NOFILE, &now) != 0) return -errno;
    *limit = {now.rlim_cur, now.rlim_max};
    return 0;
  }

  int SetFdLimit(const FdLimit& limit) override {
    const rlimit wanted = {limit.soft, limit.hard};
    return ResultOrErrno(setrlimit(RLIMIT_NOFILE, &wanted));
  }

  int OpenFdCnt() override {
    DIR* folder = opendir("/proc/self/fd");
    if (folder == nullptr) return -errno;
    int cnt = 0;
    while (const dirent* entry = readdir(folder)) {
      cnt += entry->d_name[0] != '.';
    }
    closedir(folder);
    return cnt - 1;  // the folder's own
  }
};

}  // namespace

PerfSys& PerfSys::Kernel() {
  static KernelPerfSys kernel;
  return kernel;
}

}  // namespace ksweep
