// Tells calls that the HTTP server passes on from all others. They come over the server's own
// in-process channel with a header that has a secret of this process, and the caller's address
// behind it; a header without the secret means nothing, wherever it comes from. Any thread.
#ifndef MUSTER_BROKER_RPC_HTTP_ENTRANCE_H_
#define MUSTER_BROKER_RPC_HTTP_ENTRANCE_H_

#include <optional>
#include <string>
#include <utility>

namespace grpc {
class ServerContextBase;
}

namespace muster::broker {

class HttpEntrance {
 public:
  HttpEntrance();

  // The header of a call for somebody at `peer`.
  std::pair<std::string, std::string> HeaderFor(const std::string& peer) const;

  // The place of the caller, "http:IP:PORT". Nothing: the call has not come over HTTP.
  std::optional<std::string> PeerOf(const grpc::ServerContextBase& call) const;
  // The same, or else the peer as gRPC names it.
  std::string OriginOf(const grpc::ServerContextBase& call) const;

 private:
  const std::string secret_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_HTTP_ENTRANCE_H_
