#include "broker/rpc/cut_connections.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "contract/parts.h"

namespace muster::broker {
namespace {

bool IsListening(int fd) {
  int is_listening = 0;
  socklen_t size = sizeof(is_listening);
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) == 0 && is_listening != 0;
}

// Returns whether the near end of the socket has the broker's address. Accepted sockets have it
// there; the sockets of clients in the same process have it at their far end.
bool IsAt(const sockaddr_storage& near_end, socklen_t size, std::string_view socket_path,
          std::initializer_list<int> ports) {
  const auto has = [&](in_port_t port) {
    return port != 0 && std::find(ports.begin(), ports.end(), ntohs(port)) != ports.end();
  };
  switch (near_end.ss_family) {
    case AF_UNIX: {
      constexpr size_t kPathAt = offsetof(sockaddr_un, sun_path);
      const auto* const path = reinterpret_cast<const char*>(&near_end) + kPathAt;
      return size > kPathAt && std::string_view(path, strnlen(path, size - kPathAt)) == socket_path;
    }
    case AF_INET:
      return has(reinterpret_cast<const sockaddr_in&>(near_end).sin_port);
    case AF_INET6:
      return has(reinterpret_cast<const sockaddr_in6&>(near_end).sin6_port);
    default:
      return false;
  }
}

}  // namespace

void CutConnections(std::string_view socket_path, std::initializer_list<int> ports) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    const std::optional<int> fd = contract::ParseNumber<int>(entry->path().filename().string());
    sockaddr_storage near_end{};
    socklen_t size = sizeof(near_end);
    if (!fd || getsockname(*fd, reinterpret_cast<sockaddr*>(&near_end), &size) != 0) continue;
    if (IsAt(near_end, size, socket_path, ports) && !IsListening(*fd)) shutdown(*fd, SHUT_RDWR);
  }
}

}  // namespace muster::broker
