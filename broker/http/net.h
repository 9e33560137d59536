// Provides sockets and the threads that serve them. Only net.cc knows Boost.Asio.
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
  // Reads the bytes that have come, `size` at most. Only one read may be in progress; the memory
  // must stay until `done`.
  virtual void Read(char* data, size_t size, Done done) = 0;
  // Writes all of the bytes. Only one write may be in progress; the bytes must stay until `done`.
  virtual void Write(std::string_view bytes, Done done) = 0;
  // Tells the other end that nothing more will be written.
  virtual void EndWrites() = 0;
  // Ends reads and writes in progress, with ok false. Only the first call has an effect.
  virtual void Close() = 0;
};

class Loop {
 public:
  virtual ~Loop() = default;
  // Runs the task on the loop's thread, unless it has stopped.
  virtual void Post(std::function<void()> task) = 0;
};

// This many threads serve all connections. They wait for no call: they only parse, translate
// requests and copy, some 50 microseconds for a small call. A request of 16 MiB of JSON takes far
// longer. Answers are translated before they reach these threads.
inline constexpr size_t kThreads = 2;

class Network {
 public:
  struct Events {
    // Is called for each new connection, on the thread of its loop. `peer` is "http:IP:PORT" or
    // "http:unix". `is_plain_tcp`: a browser can be led here by a name that it cannot check.
    std::function<void(std::shared_ptr<Loop> loop, size_t loop_number,
                       std::unique_ptr<Socket> socket, std::string peer, bool is_plain_tcp)>
        accepted;
    // Is called on each loop's thread once a second.
    std::function<void(size_t loop_number)> tick;
  };

  static std::unique_ptr<Network> Make(Events events);
  virtual ~Network() = default;

  // Returns the port, or 0 for a Unix socket. Returns UNAVAILABLE if the address is in use or the
  // system refuses it; the message says what to do.
  virtual absl::StatusOr<int> Listen(const std::string& address) = 0;
  // Does the same with TLS, with the certificate that the files contain at the time of each
  // handshake.
  virtual absl::StatusOr<int> ListenTls(const std::string& address, const TlsFiles& files) = 0;
  // Begins to accept.
  virtual void Start() = 0;
  // Accepts no more, and removes the Unix sockets.
  virtual void StopAccepting() = 0;
  // Runs the task on each loop and waits for all of them.
  virtual void OnEachLoop(const std::function<void(size_t loop_number)>& task) = 0;
  // Ends the threads. After that, remaining sockets do nothing.
  virtual void Stop() = 0;
};

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_NET_H_
