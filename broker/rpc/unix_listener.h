// Accepts on the broker's Unix socket, asks the kernel who connects (SO_PEERCRED), and hands the
// connection on.
#ifndef MUSTER_BROKER_RPC_UNIX_LISTENER_H_
#define MUSTER_BROKER_RPC_UNIX_LISTENER_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace muster::broker {

class UnixListener {
 public:
  // Called on the listener's thread. Takes over the descriptor, which is non-blocking. The owner is
  // the broker's own user, or root, who can become that user.
  using Accepted = std::function<void(int fd, std::string user, bool is_owner)>;

  // Binds the socket, with these permissions. A socket that a broker left behind is replaced: the
  // caller holds the lock of the state directory, so no live broker listens there.
  // INVALID_ARGUMENT: the path is too long for a socket. Other errors are the system's, with the
  // path.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Bind(const std::string& path, mode_t mode);
  ~UnixListener();

  void Start(Accepted accepted);
  // Accepts no more and removes the socket.
  void Stop();

 private:
  UnixListener(std::string path, int listen_fd, int stop_fd);
  void Run();
  void AcceptOne();

  const std::string path_;
  const int listen_fd_;
  const int stop_fd_;  // eventfd
  Accepted accepted_;
  std::thread thread_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_UNIX_LISTENER_H_
