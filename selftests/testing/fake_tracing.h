// A kernel behind the seam to bpf(2) that knows BTF objects, tracing programs
// and their links, of one function and of many: what it refuses, in the
// kernel's order and with the kernel's errno.

#ifndef KSWEEP_SELFTESTS_TESTING_FAKE_TRACING_H_
#define KSWEEP_SELFTESTS_TESTING_FAKE_TRACING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/bpf_sys.h"
#include "lib/base/unique_fd.h"

namespace ksweep {

// Thread-safe, but for options() and for adding what the kernel has.
class FakeTracingSys : public BpfSys {
 public:
  struct Options {
    bool has_multi = true;             // tracing_multi links
    bool has_direct_calls = true;      // else EOPNOTSUPP
    size_t max_open_links = SIZE_MAX;  // EMFILE beyond
    uint32_t enomem_cnt = UINT32_MAX;  // a link of so many gets no memory
    size_t max_programs = 38;          // on one function
    // Called in each call that loads or links, outside of all locks.
    std::function<void(int cmd)> on_call;
  };

  // By object (0: the core kernel) and id.
  using FuncId = std::pair<uint32_t, uint32_t>;

  struct Func {
    bool no_trampoline = false;  // on the kernel's deny list: EINVAL
    bool traceable = true;       // else ENOENT
    bool wide_return = false;    // EOPNOTSUPP at the return
    size_t foreign_programs = 0;
  };

  // A link that was made, as it was asked for.
  struct Link {
    uint32_t attach_type = 0;
    uint32_t object = 0;
    std::vector<uint32_t> ids;
    std::vector<uint64_t> cookies;
    uint64_t program = 0;  // tells programs apart
    int fd = -1;
    uint64_t inode = 0;  // tells whether the descriptor is still this link
  };

  // A program that was loaded.
  struct Program {
    uint32_t attach_type = 0;
    uint32_t object = 0;
    uint32_t btf_id = 0;
    uint32_t prog_flags = 0;
    std::string license;
    std::string name;
    size_t insn_cnt = 0;
  };

  Options& options() { return options_; }

  // The BTF of a module; the core kernel's is object 0. Returns the object, and
  // is a BTF object of a BPF program if the name is empty.
  uint32_t AddModule(std::string name);
  Func& AddFunc(uint32_t object, uint32_t id);
  // Unloads it: its BTF is found no more.
  void RemoveModule(uint32_t object);

  // A program of the core kernel that is loaded; the descriptor lives as long
  // as the fake.
  int AddProgram(uint32_t attach_type);

  // Lets call number `call`, from 0, fail with `err`.
  void FailCall(uint32_t call, int err);

  int Bpf(int cmd, void* attr, size_t size) override;

  uint32_t calls() const;
  // The number of calls of `cmd`.
  uint32_t calls(int cmd) const;
  // Made so far, in order, also those closed since.
  std::vector<Link> links() const;
  std::vector<Program> loads() const;
  // Of the links those whose descriptor is open.
  std::vector<Link> OpenLinks() const;

 private:
  int Dispatch(int cmd, void* attr, size_t size);
  int LoadProgram(const ProgLoadAttr& attr);
  int CheckLoad(const ProgLoadAttr& attr, uint32_t object) const;
  int LinkOne(const TracingLinkAttr& attr);
  int LinkMany(const TracingMultiLinkAttr& attr);
  int MakeLink(Link link, size_t cnt);
  int CheckFunc(const Link& link, uint32_t id) const;
  int FindTrampoline(uint32_t attach_type, FuncId func) const;
  int NextBtf(IdAttr* attr) const;
  int OpenBtf(uint32_t id);
  int GetInfo(const ObjInfoAttr& attr) const;
  int GetBtfInfo(uint32_t object, void* place) const;
  int GetLinkInfo(const Link& link, void* place, size_t bytes) const;
  const Link* OpenLink(int fd) const;
  int NewFd(uint64_t* inode);

  mutable std::mutex mutex_;
  Options options_;
  std::vector<UniqueFd> program_fds_;
  std::map<uint32_t, std::string> objects_;  // name by object; not the core's
  uint32_t next_object_ = 2;
  std::map<FuncId, Func> funcs_;
  std::map<uint64_t, uint32_t> btf_fds_;  // object by inode
  std::map<uint64_t, Program> programs_;  // by inode
  std::vector<Program> loads_;
  std::vector<Link> links_;
  std::map<uint32_t, int> failures_;
  std::map<int, uint32_t> calls_by_cmd_;
  uint32_t calls_ = 0;
};

}  // namespace ksweep

#endif  // KSWEEP_SELFTESTS_TESTING_FAKE_TRACING_H_
