#include "daemon/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"

namespace muster {
namespace {

absl::Status ReadAll(int fd, const std::string& path, size_t max_bytes, std::string* out) {
  char buffer[64 << 10];
  while (true) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got == 0) return absl::OkStatus();
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, fmt::format("cannot read {}", path));
    out->append(buffer, static_cast<size_t>(got));
    if (out->size() > max_bytes) {
      return absl::InvalidArgumentError(
          fmt::format("{}: has more than {} bytes, which is the limit", path, max_bytes));
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  std::string text;
  if (path == "-") {
    const absl::Status status = ReadAll(STDIN_FILENO, "standard input", max_bytes, &text);
    return status.ok() ? absl::StatusOr<std::string>(std::move(text)) : status;
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, fmt::format("cannot open {}", path));
  const absl::Status status = ReadAll(fd, path, max_bytes, &text);
  close(fd);
  if (!status.ok()) return status;
  return text;
}

}  // namespace muster
