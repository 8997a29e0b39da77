#include "common/input_lines.h"

#include <errno.h>
#include <unistd.h>

#include <utility>

namespace examples {

std::vector<std::string> InputLines::Read() {
  std::vector<std::string> lines;
  char buffer[4096];
  const ssize_t size = read(fd_, buffer, sizeof(buffer));
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return lines;
  if (size <= 0) {
    fd_ = -1;
    if (!begun_.empty()) lines.push_back(std::exchange(begun_, ""));
    return lines;
  }
  begun_.append(buffer, static_cast<size_t>(size));
  size_t begin = 0;
  for (size_t end; (end = begun_.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    lines.push_back(begun_.substr(begin, end - begin));
  }
  begun_.erase(0, begin);
  return lines;
}

}  // namespace examples
