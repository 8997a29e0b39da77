// A kernel behind the seams to perf_event_open(2) and bpf(2) that knows single
// kprobes and nothing else: what it refuses, in the kernel's order and with the
// kernel's errno.

#ifndef KSWEEP_SELFTESTS_TESTING_FAKE_PERF_H_
#define KSWEEP_SELFTESTS_TESTING_FAKE_PERF_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/attach/kinds/kprobe_pmu.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/perf_sys.h"
#include "lib/base/unique_fd.h"

namespace ksweep {

// Hands out real descriptors, so that leaks can be counted. Not thread-safe.
class FakePerf : public BpfSys, public PerfSys {
 public:
  struct Options {
    KprobePmu pmu = {.type = 8, .retprobe_config = 1};
    bool has_perf_links = true;  // Linux 5.15
    bool privileged = true;      // CAP_PERFMON and CAP_BPF
    FdLimit limit = {.soft = 1024, .hard = 4096};
    int open_fds = 10;          // negative: the errno of counting them
    int set_limit_errno = 0;    // of raising the limit
    bool limit_hidden = false;  // reading the limit fails
  };

  // A program attached to an event.
  struct Attached {
    bool by_link = false;
    bool at_return = false;
    bool enabled = false;  // by ioctl
    uint64_t addr = 0;
    std::string name;
    uint64_t cookie = 0;
    int prog_fd = -1;
    int fd = -1;
    uint64_t inode = 0;  // tells whether the descriptor is still this one
  };

  Options& options() { return options_; }

  // A loaded kprobe program; its descriptor lives as long as the fake.
  int AddProgram(uint32_t expected_attach_type = 0);

  // A function that kprobes take. A name that is there twice is refused.
  void AddFunction(uint64_t addr, std::string name);

  // Has the address refused with an errno of its own.
  void RefuseAddr(uint64_t addr, int err) { refusals_[addr] = err; }

  // Lets call number `call`, from 0, fail with `err`. Of bpf(), ioctl() and
  // perf_event_open().
  void FailCall(uint32_t call, int err) { failures_[call] = err; }

  int Bpf(int cmd, void* attr, size_t size) override;
  int OpenEvent(perf_event_attr* attr) override;
  int Ioctl(int fd, unsigned long request, unsigned long arg) override;
  int GetFdLimit(FdLimit* limit) override;
  int SetFdLimit(const FdLimit& limit) override;
  int OpenFdCnt() override { return options_.open_fds; }

  uint32_t calls() const { return calls_; }
  // Made so far, in order, also those closed since.
  const std::vector<Attached>& attached() const { return attached_; }
  // Of these, those whose descriptor is open.
  size_t OpenCnt() const;

 private:
  struct Event {
    Attached attached;  // as far as the event knows
    uint64_t inode = 0;
  };

  // The errno that the next call is to fail with, or 0.
  int NextFailure();
  int CheckEvent(const perf_event_attr& attr) const;
  int CheckFunction(const perf_event_attr& attr) const;
  int LoadProgram(const ProgLoadAttr& attr);
  int CreateLink(const PerfLinkAttr& attr);
  int SetProgram(int fd, int prog_fd);
  int Enable(int fd);
  // Null if `fd` is no open event.
  const Event* FindEvent(int fd) const;

  Options options_;
  std::vector<UniqueFd> program_fds_;
  std::map<int, uint32_t> programs_;  // expected attach type by descriptor
  std::map<uint64_t, std::string> functions_;
  std::map<uint64_t, int> refusals_;
  std::map<uint32_t, int> failures_;
  std::map<int, Event> events_;
  std::vector<Attached> attached_;
  uint32_t calls_ = 0;
};

}  // namespace ksweep

#endif  // KSWEEP_SELFTESTS_TESTING_FAKE_PERF_H_
