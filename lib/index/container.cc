#include "lib/index/container.h"

#include <cstring>

#include "absl/strings/str_format.h"
#include "lib/base/hash.h"
#include "lib/index/le.h"

namespace ksweep {
namespace {

constexpr std::string_view kMagic("KSWEEPSX", 8);
constexpr uint32_t kByteOrderMark = 0x01020304;
constexpr uint32_t kForeignMark = 0x04030201;
// Of the header up to its checksum.
constexpr size_t kPlainHeaderBytes = 32;
constexpr size_t kHeaderBytes = kPlainHeaderBytes + 8;
constexpr size_t kEntryBytes = 32;
constexpr uint32_t kMaxSections = 256;

uint64_t Aligned(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }

absl::Status Damaged(std::string_view what) {
  return absl::DataLossError("damaged: " + std::string(what));
}

std::string PlainHeader(uint64_t file_bytes, size_t sections) {
  std::string header(kMagic);
  AppendLe(kByteOrderMark, &header);
  AppendLe(kContainerVersion, &header);
  AppendLe(file_bytes, &header);
  AppendLe(static_cast<uint32_t>(sections), &header);
  AppendLe(uint32_t{0}, &header);
  return header;
}

// Of whole blocks of 16 bytes.
uint64_t HashBlocks(const char* bytes, size_t size, uint64_t seed) {
  uint64_t hash = seed ^ size * kHash1;
  for (size_t at = 0; at < size; at += 16) {
    hash = FoldMultiply(LoadLe<uint64_t>(bytes + at) ^ hash,
                        LoadLe<uint64_t>(bytes + at + 8) ^ kHash0);
  }
  return FoldMultiply(hash ^ kHash1, kHash0);
}

uint64_t HeaderChecksum(std::string_view plain, std::string_view table) {
  return ChecksumOf(std::string(plain) + std::string(table));
}

}  // namespace

uint64_t ChecksumOf(std::string_view bytes) {
  const size_t whole = bytes.size() & ~size_t{15};
  char last[16] = {};
  std::memcpy(last, bytes.data() + whole, bytes.size() - whole);
  const uint64_t hash = HashBlocks(bytes.data(), whole, kContainerVersion);
  return HashBlocks(last, sizeof(last), hash ^ bytes.size());
}

uint64_t ContainerHeaderBytes(size_t sections) {
  return kHeaderBytes + kEntryBytes * sections;
}

uint64_t ContainerBytes(const Sections& sections) {
  uint64_t bytes = ContainerHeaderBytes(sections.size());
  for (const auto& [kind, section] : sections) bytes += Aligned(section.size());
  return bytes;
}

std::string PackContainer(const Sections& sections) {
  const uint64_t file_bytes = ContainerBytes(sections);
  std::string table;
  uint64_t offset = ContainerHeaderBytes(sections.size());
  for (const auto& [kind, bytes] : sections) {
    AppendLe(kind, &table);
    AppendLe(uint32_t{0}, &table);
    AppendLe(offset, &table);
    AppendLe(uint64_t{bytes.size()}, &table);
    AppendLe(ChecksumOf(bytes), &table);
    offset += Aligned(bytes.size());
  }
  std::string file = PlainHeader(file_bytes, sections.size());
  AppendLe(HeaderChecksum(file, table), &file);
  file += table;
  file.reserve(file_bytes);
  for (const auto& [kind, bytes] : sections) {
    file += bytes;
    file.resize(Aligned(file.size()));
  }
  return file;
}

absl::StatusOr<Container> Container::Parse(std::string_view bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::InvalidArgumentError("not a symbol index");
  }
  LeReader reader(bytes.substr(kMagic.size()));
  const uint32_t mark = reader.Take<uint32_t>();
  const uint32_t version = reader.Take<uint32_t>();
  const uint64_t file_bytes = reader.Take<uint64_t>();
  const uint32_t cnt = reader.Take<uint32_t>();
  reader.Take<uint32_t>();
  const uint64_t checksum = reader.Take<uint64_t>();
  if (!reader.ok()) return Damaged("the header is cut off");
  if (mark == kForeignMark) {
    return absl::InvalidArgumentError(
        "a symbol index in the other byte order; build it anew");
  }
  if (mark != kByteOrderMark) return Damaged("no byte order mark");
  if (version != kContainerVersion) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a symbol index of version %d; this library reads version %d, build "
        "it anew",
        version, kContainerVersion));
  }
  if (file_bytes != bytes.size()) {
    return Damaged(
        absl::StrFormat("%d bytes instead of %d", bytes.size(), file_bytes));
  }
  if (cnt > kMaxSections) return Damaged("too many sections");
  const std::string_view table = reader.TakeBytes(uint64_t{cnt} * kEntryBytes);
  if (!reader.ok() ||
      HeaderChecksum(bytes.substr(0, kPlainHeaderBytes), table) != checksum) {
    return Damaged("the header's checksum differs");
  }
  Container container;
  LeReader entries(table);
  for (uint32_t i = 0; i < cnt; ++i) {
    const SectionKind kind = entries.Take<uint32_t>();
    entries.Take<uint32_t>();
    const uint64_t offset = entries.Take<uint64_t>();
    const uint64_t size = entries.Take<uint64_t>();
    if (offset > bytes.size() || size > bytes.size() - offset) {
      return Damaged(absl::StrFormat("section %d lies outside", kind));
    }
    container.checksums_[kind] = entries.Take<uint64_t>();
    const bool is_new =
        container.sections_.emplace(kind, bytes.substr(offset, size)).second;
    if (!is_new) return Damaged(absl::StrFormat("section %d twice", kind));
  }
  return container;
}

std::string_view Container::Get(SectionKind kind) const {
  const auto found = sections_.find(kind);
  return found == sections_.end() ? std::string_view() : found->second;
}

absl::Status Container::Check(SectionKind kind) const {
  const auto found = checksums_.find(kind);
  if (found == checksums_.end()) {
    return Damaged(absl::StrFormat("section %d is missing", kind));
  }
  if (ChecksumOf(Get(kind)) != found->second) {
    return Damaged(absl::StrFormat("the checksum of section %d differs", kind));
  }
  return absl::OkStatus();
}

absl::Status Container::CheckAll() const {
  for (const auto& [kind, bytes] : sections_) {
    absl::Status status = Check(kind);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace ksweep
