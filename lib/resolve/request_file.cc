#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_format.h"
#include "ksweep/request.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"
#include "lib/base/unique_fd.h"

namespace ksweep {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// No name has a '#', so it starts a comment wherever it stands.
std::string_view WithoutComment(std::string_view line) {
  return Trim(line.substr(0, line.find('#')));
}

absl::StatusOr<std::string> ReadAll(int fd, std::string_view path) {
  std::string text;
  char buffer[16 * 1024];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    const int err = errno;
    if (got == 0) return text;
    if (got > 0) {
      text.append(buffer, static_cast<size_t>(got));
    } else if (err != EINTR) {
      return ErrnoStatus(
          err, absl::StrFormat("cannot read the request file %s", Av(path)));
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<Request>> ParseRequests(std::string_view text,
                                                   std::string_view source) {
  // As some editors put in front of a text; no part of a name.
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  std::vector<Request> requests;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = WithoutComment(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    absl::StatusOr<Request> request = Request::Parse(line);
    if (!request.ok()) {
      return Annotate(request.status(),
                      absl::StrFormat("%s:%d", Av(source), number));
    }
    requests.push_back(*std::move(request));
  }
  return requests;
}

absl::StatusOr<std::vector<Request>> LoadRequests(const std::string& path) {
  if (path == "-") {
    absl::StatusOr<std::string> text = ReadAll(STDIN_FILENO, "standard input");
    if (!text.ok()) return text.status();
    return ParseRequests(*text, "standard input");
  }
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int err = errno;
  if (!fd.valid()) {
    return ErrnoStatus(
        err, absl::StrFormat("cannot open the request file %s", path));
  }
  absl::StatusOr<std::string> text = ReadAll(fd.get(), path);
  if (!text.ok()) return text.status();
  return ParseRequests(*text, path);
}

}  // namespace ksweep
