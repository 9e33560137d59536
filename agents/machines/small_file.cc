#include "agents/machines/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace muster::machines {
namespace {

// Closes a descriptor at the end of a scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

int WriteAll(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

// Returns a name that no other process, and no earlier one with this pid, is in the middle of
// using; what is there is replaced.
std::string TemporaryName(const std::string& path) {
  return path + "." + std::to_string(getpid()) + "." + std::to_string(gettid()) + ".tmp";
}

}  // namespace

int ReadSmallFile(const std::string& path, size_t max_bytes, std::string* content) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return errno;
  content->clear();
  char buffer[4096];
  while (true) {
    const ssize_t n = read(file.fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return 0;
    content->append(buffer, static_cast<size_t>(n));
    if (content->size() > max_bytes) return EFBIG;
  }
}

int WriteSmallFile(const std::string& path, std::string_view content, mode_t mode) {
  const Descriptor file{
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode)};
  if (file.fd < 0) return errno;
  return WriteAll(file.fd, content);
}

int ReplaceSmallFile(const std::string& path, std::string_view content, mode_t mode) {
  const std::string temporary = TemporaryName(path);
  int error = WriteSmallFile(temporary, content, mode);
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) unlink(temporary.c_str());
  return error;
}

int ClaimFile(const std::string& path, std::string_view content, mode_t mode) {
  const std::string temporary = TemporaryName(path);
  int error = WriteSmallFile(temporary, content, mode);
  if (error == 0 && link(temporary.c_str(), path.c_str()) != 0) error = errno;
  unlink(temporary.c_str());
  return error != 0 ? error : SyncFile(path);
}

int SyncFile(const std::string& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return errno;
  return fsync(file.fd) == 0 ? 0 : errno;
}

}  // namespace muster::machines
