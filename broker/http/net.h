// Sockets and the threads that serve them. Boost.Asio is behind it, in one file.
//
// A Loop is a thread, and each socket belongs to one: its methods are called there, and so are the
// functions that they are given. Post alone is for any thread.
#ifndef MUSTER_BROKER_HTTP_NET_H_
#define MUSTER_BROKER_HTTP_NET_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/http/options.h"

namespace muster::http {

class Socket {
 public:
  // `ok` is false when the other end has closed, or the socket has failed.
  using Done = std::function<void(bool ok, size_t bytes)>;

  virtual ~Socket() = default;
  // Reads what there is, `size` bytes at most. One at a time; the memory stays until `done`.
  virtual void Read(char* data, size_t size, Done done) = 0;
  // Writes all of it. One at a time; the bytes stay until `done`.
  virtual void Write(std::string_view bytes, Done done) = 0;
  // Says that no more will be written.
  virtual void EndWrites() = 0;
  // Ends what is under way, with ok false. The first call counts.
  virtual void Close() = 0;
};

class Loop {
 public:
  virtual ~Loop() = default;
  // Runs the task on the loop's thread, unless it has stopped.
  virtual void Post(std::function<void()> task) = 0;
};

// The number of threads that serve all connections. A call waits for none of them: they parse,
// translate requests and copy: some 50 microseconds for a small call. A request of 16 MiB of JSON
// takes its thread far longer; answers are translated before they come here.
inline constexpr size_t kThreads = 2;

class Network {
 public:
  struct Events {
    // A connection has come, on a thread of its loop. `peer` is "http:IP:PORT" or "http:unix". A
    // browser can be led to plain TCP by a name that it cannot check.
    std::function<void(std::shared_ptr<Loop> loop, size_t loop_number,
                       std::unique_ptr<Socket> socket, std::string peer, bool is_plain_tcp)>
        accepted;
    // Comes on each loop's thread once a second.
    std::function<void(size_t loop_number)> tick;
  };

  static std::unique_ptr<Network> Make(Events events);
  virtual ~Network() = default;

  // UNAVAILABLE: the address is in use, or the system refuses it; the message says what to do.
  // Returns the port; of a Unix socket 0.
  virtual absl::StatusOr<int> Listen(const std::string& address) = 0;
  // The same with TLS, with the certificate that the files hold at the time of each handshake.
  virtual absl::StatusOr<int> ListenTls(const std::string& address, const TlsFiles& files) = 0;
  // Begins to accept.
  virtual void Start() = 0;
  // Accepts no more, and removes the Unix sockets.
  virtual void StopAccepting() = 0;
  // Runs the task on each loop and waits for all of them.
  virtual void OnEachLoop(const std::function<void(size_t loop_number)>& task) = 0;
  // Ends the threads. Sockets that live on do nothing any more.
  virtual void Stop() = 0;
};

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_NET_H_
