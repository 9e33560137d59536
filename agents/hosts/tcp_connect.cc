#include "agents/hosts/tcp_connect.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "agents/hosts/steady_now.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

absl::Status Unavailable(const LoginHost& host, std::string_view why) {
  return absl::UnavailableError(fmt::format("cannot connect to {}: {}", host.ToString(), why));
}

absl::StatusOr<Fd> ConnectTo(const LoginHost& host, const addrinfo& address, absl::Duration until,
                             int stop_fd) {
  Fd fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Unavailable(host, std::strerror(errno));
  // Small packets go both ways in turn; waiting to fill them would only add delay.
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return Unavailable(host, std::strerror(errno));
  absl::Status status = WaitFor(fd.get(), POLLOUT, until, stop_fd);
  if (absl::IsDeadlineExceeded(status)) return Unavailable(host, "no answer in time");
  if (!status.ok()) return status;
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return Unavailable(host, std::strerror(error));
  return fd;
}

}  // namespace

absl::Status WaitFor(int fd, short events, absl::Duration until, int stop_fd) {
  while (true) {
    const absl::Duration left = until - SteadyNow();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("time is over");
    pollfd fds[] = {{fd, events, 0}, {stop_fd, POLLIN, 0}};
    const absl::Duration wait = std::min(left, absl::Minutes(1));
    const int count = poll(fds, 2, static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
    if (count <= 0) continue;
    if (fds[1].revents != 0) return absl::CancelledError("the connection is no longer wanted");
    if (fds[0].revents != 0) return absl::OkStatus();
  }
}

absl::StatusOr<Fd> TcpConnect(const LoginHost& host, absl::Duration timeout, int stop_fd) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(host.port);
  const int error = getaddrinfo(host.name.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return Unavailable(host, gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  const absl::Duration until = SteadyNow() + timeout;
  absl::StatusOr<Fd> fd = Unavailable(host, "it has no address");
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    fd = ConnectTo(host, *address, until, stop_fd);
    if (fd.ok() || absl::IsCancelled(fd.status())) break;
  }
  return fd;
}

}  // namespace muster::hosts
