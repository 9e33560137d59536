// The HTTP server as this broker has it: in front of its own gRPC server, with its rights.
#ifndef MUSTER_BROKER_RPC_HTTP_FRONT_H_
#define MUSTER_BROKER_RPC_HTTP_FRONT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/auth/server_identity.h"
#include "broker/http/server.h"

namespace grpc {
class Server;
}

namespace muster::broker {

class CallAudit;
class HttpEntrance;
class Users;

struct HttpFront {
  http::HttpOptions options;
  const ServerIdentity* identity = nullptr;  // with tls_listen
  grpc::Server* server = nullptr;
  std::vector<std::string> services;  // those that callers may reach
  const Users* users = nullptr;
  CallAudit* audit = nullptr;
  const HttpEntrance* entrance = nullptr;
  std::function<bool()> is_ready;
  std::function<std::string()> metrics;
};

// All pointers outlive the server. Errors are those of Server::Begin.
absl::StatusOr<std::unique_ptr<http::Server>> BeginHttp(HttpFront front);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_HTTP_FRONT_H_
