// The file: a header, a table of sections, the sections. All numbers are
// little-endian:
//
//   magic[8]  u32 byte order mark  u32 version  u64 bytes of the file
//   u32 sections  u32 0  u64 checksum of all before it and of the table
//   each section: u32 kind  u32 0  u64 offset  u64 size  u64 checksum

#ifndef KSWEEP_LIB_INDEX_CONTAINER_H_
#define KSWEEP_LIB_INDEX_CONTAINER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ksweep {

inline constexpr uint32_t kContainerVersion = 3;

using SectionKind = uint32_t;
using Sections = std::map<SectionKind, std::string_view>;

// Of the bytes of a section.
uint64_t ChecksumOf(std::string_view bytes);

// Bytes in front of `sections` sections.
uint64_t ContainerHeaderBytes(size_t sections);
// And of the whole file.
uint64_t ContainerBytes(const Sections& sections);

// The whole file. Sections start at multiples of 8 bytes.
std::string PackContainer(const Sections& sections);

class Container {
 public:
  // Checks the header and that the sections lie inside of `bytes`, which have
  // to stay. InvalidArgument if it is something else: another format, version
  // or byte order; DataLoss if it is damaged.
  static absl::StatusOr<Container> Parse(std::string_view bytes);

  const Sections& sections() const { return sections_; }
  bool Has(SectionKind kind) const { return sections_.contains(kind); }
  // Empty if there is none.
  std::string_view Get(SectionKind kind) const;

  // DataLoss if the bytes of that section are not those that were written.
  absl::Status Check(SectionKind kind) const;
  absl::Status CheckAll() const;

 private:
  Sections sections_;
  std::map<SectionKind, uint64_t> checksums_;
};

}  // namespace ksweep

#endif  // KSWEEP_LIB_INDEX_CONTAINER_H_
