// The broker's HTTP server: the Connect protocol, the web page, and what operators ask for
// (/healthz, /readyz, /metrics).
//
// It knows gRPC as a channel, to which it passes each call on: rights, bounds, the audit log and
// errors are those of gRPC's listeners, because they are the same code.
#ifndef MUSTER_BROKER_HTTP_SERVER_H_
#define MUSTER_BROKER_HTTP_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/http/options.h"
#include "broker/http/service.h"

namespace grpc {
class Channel;
}

namespace muster::http {

// All methods belong to the main thread.
class Server {
 public:
  struct Start {
    HttpOptions options;
    TlsFiles tls;                       // with tls_listen
    std::vector<std::string> services;  // those that callers may reach
    std::shared_ptr<grpc::Channel> channel;
    Hooks hooks;
  };

  // Begins to serve. Errors are those of Network::Listen.
  static absl::StatusOr<std::unique_ptr<Server>> Begin(Start start);
  // Stops first.
  virtual ~Server() = default;

  // These are the ports in use; 0 means none.
  virtual int port() const = 0;
  virtual int tls_port() const = 0;
  virtual const Counts& counts() const = 0;

  // Accepts no more connections, and closes those that wait for a request.
  virtual void Drain() = 0;
  // Waits until all requests in progress are answered, at most this long, and ends.
  virtual void Stop(absl::Duration patience) = 0;
};

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_SERVER_H_
