#include "lib/source/build_id.h"

#include <elf.h>

#include <algorithm>

#include "lib/base/bytes.h"
#include "lib/source/list_file.h"

namespace ksweep {
namespace {

constexpr size_t kNoteHeaderBytes = 12;
constexpr std::string_view kGnu("GNU", 4);

uint64_t Aligned(uint64_t bytes) { return (bytes + 3) & ~uint64_t{3}; }

}  // namespace

std::string_view FindBuildId(std::string_view notes) {
  while (notes.size() >= kNoteHeaderBytes) {
    const uint64_t name_size = LoadU32(notes.data());
    const uint64_t desc_size = LoadU32(notes.data() + 4);
    const uint32_t type = LoadU32(notes.data() + 8);
    notes.remove_prefix(kNoteHeaderBytes);
    const uint64_t desc = Aligned(name_size);
    if (desc > notes.size() || desc_size > notes.size() - desc) return {};
    if (type == NT_GNU_BUILD_ID && notes.substr(0, name_size) == kGnu) {
      return notes.substr(desc, desc_size);
    }
    notes.remove_prefix(
        std::min<uint64_t>(desc + Aligned(desc_size), notes.size()));
  }
  return {};
}

std::string KernelBuildId(const KernelFiles& files) {
  const absl::StatusOr<std::string> notes =
      ReadSmallFile(files, KernelFile::kNotes);
  return notes.ok() ? std::string(FindBuildId(*notes)) : std::string();
}

}  // namespace ksweep
