// A kernel behind the seam to bpf(2) that knows kprobe.multi links and nothing
// else: what it refuses, in the kernel's order and with the kernel's errno.

#ifndef KSWEEP_SELFTESTS_TESTING_FAKE_BPF_H_
#define KSWEEP_SELFTESTS_TESTING_FAKE_BPF_H_

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/base/bpf_sys.h"
#include "lib/base/unique_fd.h"

namespace ksweep {

// Descriptors open in this process.
size_t CountOpenFds();

// Thread-safe, but for options().
class FakeBpfSys : public BpfSys {
 public:
  struct Options {
    bool has_fprobe = true;  // CONFIG_FPROBE
    // An address that is no function: ENOENT from Linux 6.18 on, EINVAL before.
    int bad_addr_errno = ENOENT;
    // A link for so many functions gets no memory, as from Linux 6.18 on.
    uint32_t enomem_cnt = 131072;
    size_t max_open_links = SIZE_MAX;  // EMFILE beyond
    bool ftrace_dead = false;          // ENODEV
    // Takes every address and every name, so that none has to be added.
    bool trace_anything = false;
    // Bytes of union bpf_attr, and of struct bpf_link_info as it is filled.
    size_t known_attr_bytes = 152;
    size_t known_info_bytes = sizeof(LinkInfoBuffer);
    uint64_t missed = 0;        // by each link
    bool hides_addrs = false;   // link info has zeros, as for kptr_restrict
    bool tells_cookies = true;  // link info has cookies, since Linux 6.9
    // Changes what link info says of the functions.
    std::function<void(std::vector<uint64_t>& addrs,
                       std::vector<uint64_t>& cookies)>
        tamper_info;
  };

  // A link that was made, as it was asked for.
  struct Link {
    uint32_t attach_type = 0;
    uint32_t flags = 0;
    std::vector<uint64_t> addrs;
    std::vector<std::string> names;
    std::vector<uint64_t> cookies;  // empty: none given
    int prog_fd = -1;
    uint64_t prog_inode = 0;
    int fd = -1;
    uint64_t inode = 0;  // tells whether the descriptor is still this link
  };

  Options& options() { return options_; }

  // A loaded program; its descriptor lives as long as the fake.
  int AddProgram(uint32_t expected_attach_type = kBpfTraceKprobeMulti);

  // A function that can be traced. Names may repeat, addresses may not. All
  // others, ftrace locations behind a landing pad included, are refused.
  void AddFunction(uint64_t addr, std::string name);

  // Has the address refused with an errno of its own, function or not. 0: not
  // any more.
  void RefuseAddr(uint64_t addr, int err);

  // Lets call number `call`, from 0, fail with `err`. 0: not any more.
  void FailCall(uint32_t call, int err);

  int Bpf(int cmd, void* attr, size_t size) override;

  uint32_t calls() const;
  // Made so far, in order, also those closed since.
  std::vector<Link> links() const;
  // Whether its descriptor is open.
  bool IsOpen(const Link& link) const;
  // Of these, those whose descriptor is open.
  size_t OpenLinkCnt() const;
  // Links that are pinned. A pin is a file that need not be on a BPF file
  // system, and a descriptor that stays open with the fake.
  size_t PinCnt() const;

 private:
  int Dispatch(int cmd, const void* attr, size_t size);
  int CreateLink(const void* attr, size_t size);
  int CheckCall(const KprobeMultiLinkAttr& attr) const;
  int CheckSize(uint32_t cnt) const;
  int CheckNames(const std::vector<std::string>& names) const;
  int CheckAddrs(const std::vector<uint64_t>& addrs) const;
  bool HasName(const std::string& name) const;
  uint64_t AddrOfName(const std::string& name) const;
  size_t OpenLinkCntLocked() const;
  const Link* FindOpenLink(int fd) const;
  int GetInfo(const void* attr, size_t size) const;
  int FillArrays(const Link& link, const KprobeMultiInfo& asked) const;
  uint32_t ProgIdOf(const Link& link) const;
  int Pin(const void* attr, size_t size);
  int OpenPin(const void* attr, size_t size);
  int OpenProgramById(const void* attr, size_t size) const;
  void DropPinsWithoutFile() const;

  mutable std::mutex mutex_;
  Options options_;
  std::vector<UniqueFd> program_fds_;
  // Expected attach type by inode, which a duplicated descriptor has too.
  std::map<uint64_t, uint32_t> programs_;
  std::unordered_set<uint64_t> functions_;
  std::unordered_map<std::string, uint64_t> names_;  // the first address
  std::map<uint64_t, int> refusals_;                 // errno by address
  std::map<uint32_t, int> failures_;
  std::vector<Link> links_;
  mutable std::map<std::string, UniqueFd> pins_;  // by path
  uint32_t calls_ = 0;
};

}  // namespace ksweep

#endif  // KSWEEP_SELFTESTS_TESTING_FAKE_BPF_H_
