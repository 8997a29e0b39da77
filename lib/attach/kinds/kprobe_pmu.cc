#include "lib/attach/kinds/kprobe_pmu.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"
#include "lib/base/unique_fd.h"

namespace ksweep {
namespace {

constexpr std::string_view kPmuFolder = "sys/bus/event_source/devices/kprobe/";

std::string PathOf(const KernelFiles& files, std::string_view name) {
  std::string path = files.root();
  if (path.back() != '/') path += '/';
  path += kPmuFolder;
  path += name;
  return path;
}

absl::Status CannotRead(int err, const std::string& path) {
  if (err == ENOENT || err == ENOTDIR) {
    return ErrnoStatus(
        err, absl::StatusCode::kUnimplemented,
        absl::StrFormat("the kernel has no perf kprobes; they need Linux 4.17 "
                        "and CONFIG_KPROBE_EVENTS, and /sys mounted: %s",
                        path));
  }
  return ErrnoStatus(err, path);
}

// Files of sysfs come in one read.
absl::StatusOr<std::string> ReadLine(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return CannotRead(errno, path);
  char buffer[256];
  const ssize_t size = read(fd.get(), buffer, sizeof(buffer));
  if (size < 0) return CannotRead(errno, path);
  std::string_view text(buffer, static_cast<size_t>(size));
  return std::string(text.substr(0, text.find('\n')));
}

std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

absl::Status Malformed(const std::string& path, std::string_view text) {
  return absl::DataLossError(absl::StrFormat(
      "%s: '%s' is not what the kernel writes there", path, Av(text)));
}

// "config:0" is the bit's number.
std::optional<uint64_t> ParseConfigBit(std::string_view text) {
  constexpr std::string_view kPrefix = "config:";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  const std::optional<uint32_t> bit = ParseNumber(text.substr(kPrefix.size()));
  if (!bit.has_value() || *bit >= 64) return std::nullopt;
  return uint64_t{1} << *bit;
}

}  // namespace

absl::StatusOr<KprobePmu> ReadKprobePmu(const KernelFiles& files) {
  const std::string type_path = PathOf(files, "type");
  absl::StatusOr<std::string> type = ReadLine(type_path);
  if (!type.ok()) return type.status();
  const std::optional<uint32_t> number = ParseNumber(*type);
  if (!number.has_value()) return Malformed(type_path, *type);

  const std::string retprobe_path = PathOf(files, "format/retprobe");
  absl::StatusOr<std::string> retprobe = ReadLine(retprobe_path);
  if (!retprobe.ok()) return retprobe.status();
  const std::optional<uint64_t> config = ParseConfigBit(*retprobe);
  if (!config.has_value()) return Malformed(retprobe_path, *retprobe);
  return KprobePmu{*number, *config};
}

}  // namespace ksweep
