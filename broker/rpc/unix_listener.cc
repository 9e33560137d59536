#include "broker/rpc/unix_listener.h"

#include <fmt/format.h>
#include <poll.h>
#include <pwd.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "contract/text.h"
#include "daemon/log.h"

namespace muster::broker {
namespace {

// At most this many connections wait to be accepted; net.core.somaxconn limits it further.
constexpr int kBacklog = 1024;
// Pause when the process has no descriptor left.
constexpr int kExhaustedPauseMs = 100;

absl::Status Failed(std::string_view what, const std::string& path) {
  const int error = errno;
  return absl::ErrnoToStatus(error, ToAbsl(fmt::format("{} {}", what, path)));
}

std::string UserName(uid_t uid) {
  std::vector<char> buffer(16 << 10);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found) {
    return found->pw_name;
  }
  return fmt::format("uid:{}", uid);
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Bind(const std::string& path,
                                                                 mode_t mode) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        ToAbsl(fmt::format("the socket path {} has {} bytes, and a Unix socket's may have {}; use "
                           "a shorter --state-dir",
                           path, path.size(), sizeof(address.sun_path) - 1)));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return Failed("cannot make a socket for", path);
  const int stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  auto listener = std::unique_ptr<UnixListener>(new UnixListener(path, fd, stop_fd));
  if (stop_fd < 0) return Failed("cannot make an eventfd for", path);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return Failed("cannot replace", path);
  // The permissions of the descriptor become those of the file at bind on Linux, so no other user
  // can connect in between.
  if (fchmod(fd, mode) != 0 ||
      bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return Failed("cannot bind", path);
  }
  if (chmod(path.c_str(), mode) != 0) return Failed("cannot set the permissions of", path);
  if (listen(fd, kBacklog) != 0) return Failed("cannot listen on", path);
  return listener;
}

UnixListener::UnixListener(std::string path, int listen_fd, int stop_fd)
    : path_(std::move(path)), listen_fd_(listen_fd), stop_fd_(stop_fd) {}

UnixListener::~UnixListener() {
  Stop();
  close(listen_fd_);
  if (stop_fd_ >= 0) close(stop_fd_);
}

void UnixListener::Start(Accepted accepted) {
  accepted_ = std::move(accepted);
  thread_ = std::thread([this] { Run(); });
}

void UnixListener::Stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_fd_, 1);
  thread_.join();
  unlink(path_.c_str());
}

void UnixListener::Run() {
  for (;;) {
    pollfd fds[2] = {{listen_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) {
      LogEvent(spdlog::level::err, "poll_failed", {{"error", std::strerror(errno)}});
      return;
    }
    if (fds[1].revents != 0) return;
    if (fds[0].revents != 0) AcceptOne();
  }
}

void UnixListener::AcceptOne() {
  const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      LogEvent(spdlog::level::err, "accept_failed", {{"error", std::strerror(errno)}});
      pollfd stop{stop_fd_, POLLIN, 0};
      poll(&stop, 1, kExhaustedPauseMs);
    }
    return;
  }
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    LogEvent(spdlog::level::err, "peer_credentials_failed", {{"error", std::strerror(errno)}});
    close(fd);
    return;
  }
  accepted_(fd, UserName(peer.uid), peer.uid == geteuid() || peer.uid == 0);
}

}  // namespace muster::broker
