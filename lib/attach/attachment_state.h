// What an Attachment holds, and what it takes to change it later.

#ifndef KSWEEP_LIB_ATTACH_ATTACHMENT_STATE_H_
#define KSWEEP_LIB_ATTACH_ATTACHMENT_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ksweep/attach.h"
#include "ksweep/attachment.h"
#include "ksweep/kernel_files.h"
#include "ksweep/link.h"
#include "ksweep/resolve.h"
#include "lib/attach/programs/program_image.h"
#include "lib/base/bpf_sys.h"
#include "lib/base/perf_sys.h"
#include "lib/base/unique_fd.h"

namespace ksweep {

// A program, and how it is attached.
struct AttachedProgram {
  Kind kind = Kind::kKprobeMulti;
  int fd = -1;
  UniqueFd own;        // what fd is, if the attachment can be changed later
  bool works = false;  // the kernel took it for a link
  // Null if it cannot be loaded once more, or never has to be.
  std::shared_ptr<const ProgramImage> image;
};

// A function's place in an attachment.
struct Slot {
  uint32_t target = 0;  // kNoTarget: no function any more
  uint64_t cookie = 0;
  uint64_t addr = 0;  // 0 by name
  uint32_t rank = 0;  // differs for the slots of one function
  bool attached = false;
  bool refused = false;
};

// What a link is made of. Parallel to AttachmentState::links.
struct LinkMembers {
  uint32_t program = 0;  // index into AttachmentState::programs
  std::string module;    // of updatable attachments
  uint32_t rank = 0;     // of all slots
  std::vector<uint32_t> slots;
};

struct AttachmentState {
  // What the links were made through, and are at an update.
  BpfSys* sys = nullptr;
  PerfSys* perf = &PerfSys::Kernel();
  KernelFiles files;
  Resolution resolution;
  AttachOptions options;  // without callbacks
  std::vector<AttachedProgram> programs;

  std::vector<Link> links;
  std::vector<LinkMembers> members;

  std::vector<Slot> slots;
  std::vector<uint32_t> targets;  // by slot, as slots[].target
  std::vector<RefusedFunction> refused;
  std::string pin_dir;  // empty: not pinned
  AttachReport report;  // but for `refused`
};

// "vfs_read" or "nft_do_chain [nf_tables]".
std::string FunctionName(const Target& target);

// What is attached now, to state.report.
void CountAttached(AttachmentState& state);

// Closes all links; the first error.
absl::Status DropLinks(AttachmentState& state);

// Sets AttachOptions::ready, if there is one.
void SetReady(const AttachOptions& options, bool ready);

}  // namespace ksweep

#endif  // KSWEEP_LIB_ATTACH_ATTACHMENT_STATE_H_
