// An open kernel list that counts what is done to it.

#ifndef KSWEEP_LIB_SOURCE_LIST_FILE_H_
#define KSWEEP_LIB_SOURCE_LIST_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ksweep/kernel_files.h"
#include "lib/base/unique_fd.h"

namespace ksweep {

class ListFile {
 public:
  // Opens `file`, at its second place if it does not exist at its first.
  // NotFound or PermissionDenied, with the errno and the path.
  static absl::StatusOr<ListFile> Open(const KernelFiles& files,
                                       KernelFile file);

  // Opens the BTF of `module`, empty: of the core kernel.
  static absl::StatusOr<ListFile> OpenBtf(const KernelFiles& files,
                                          std::string_view module);

  // What is in memory already; `name` is for messages.
  static ListFile OfText(std::string text, std::string name);

  // Reads up to `size` bytes; 0 at the end.
  absl::StatusOr<size_t> Read(char* buffer, size_t size);

  // Starts a further pass.
  absl::Status Rewind();

  // The whole of it, from the start.
  absl::StatusOr<std::string> ReadAll();

  // The path is below the root, or as given for an override.
  const FileStats& stats() const { return stats_; }
  int64_t read_ns() const { return read_ns_; }

 private:
  ListFile(UniqueFd fd, std::string path, std::string stats_path);

  UniqueFd fd_;
  std::unique_ptr<const std::string> text_;  // instead of a descriptor
  size_t text_at_ = 0;
  std::string path_;
  FileStats stats_;
  int64_t read_ns_ = 0;
};

// The error to give up with if `status` is about what this process lacks,
// descriptors or memory, and so tells nothing of the file; else Ok.
absl::Status ShortageOf(const absl::Status& status);

// The whole of a small file such as a sysctl.
absl::StatusOr<std::string> ReadSmallFile(const KernelFiles& files,
                                          KernelFile file);

}  // namespace ksweep

#endif  // KSWEEP_LIB_SOURCE_LIST_FILE_H_
