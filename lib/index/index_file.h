// Index files: mapping one, and writing one in one step.

#ifndef KSWEEP_LIB_INDEX_INDEX_FILE_H_
#define KSWEEP_LIB_INDEX_INDEX_FILE_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ksweep {

// A file's bytes, read-only, as long as this lives. A file that is made shorter
// meanwhile kills who reads it, so write with WriteFileAtOnce() only.
class MappedFile {
 public:
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Map(
      const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::string_view bytes() const {
    return {static_cast<const char*>(start_), size_};
  }

 private:
  MappedFile(void* start, size_t size) : start_(start), size_(size) {}

  void* start_;
  size_t size_;
};

// Makes `path` a file with these bytes, on disk before it has that name. Who
// opens `path` sees the old file or the new one.
absl::Status WriteFileAtOnce(const std::string& path, std::string_view bytes);

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_INDEX_FILE_H_
