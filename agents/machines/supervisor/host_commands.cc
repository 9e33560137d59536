#include "agents/machines/supervisor/host_commands.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "agents/machines/host_report.h"

namespace muster::machines {

int HostError(const std::string& what, const std::string& path, int error) {
  fprintf(stderr, "cannot %s \"%s\": %s\n", what.c_str(), path.c_str(), strerror(error));
  return kHostFailed;
}

bool ReadSome(int fd, std::string* bytes) {
  char buffer[65536];
  const ssize_t n = read(fd, buffer, sizeof buffer);
  if (n > 0) bytes->append(buffer, static_cast<size_t>(n));
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string RunKeyOf(const std::string& directory) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  if (!directory.starts_with('/')) return "";
  std::string key = directory.substr(directory.rfind('/') + 1);
  return std::all_of(key.begin(), key.end(), is_good) ? key : "";
}

}  // namespace muster::machines
