#include "broker/rpc/http_entrance.h"

#include <grpcpp/server_context.h>
#include <openssl/crypto.h>

#include <string_view>

#include "digest/token_text.h"

namespace muster::broker {
namespace {

// gRPC gives the keys of metadata in lower case.
constexpr char kHeader[] = "muster-http-peer";

}  // namespace

HttpEntrance::HttpEntrance() : secret_(NewTokenText()) {}

std::pair<std::string, std::string> HttpEntrance::HeaderFor(const std::string& peer) const {
  return {kHeader, secret_ + peer};
}

std::optional<std::string> HttpEntrance::PeerOf(const grpc::ServerContextBase& call) const {
  const auto found = call.client_metadata().find(kHeader);
  if (found == call.client_metadata().end()) return std::nullopt;
  const std::string_view value(found->second.data(), found->second.size());
  // Without random bytes there is no secret, and nobody has it.
  if (secret_.empty() || value.size() < secret_.size() ||
      CRYPTO_memcmp(value.data(), secret_.data(), secret_.size()) != 0) {
    return std::nullopt;
  }
  return std::string(value.substr(secret_.size()));
}

std::string HttpEntrance::OriginOf(const grpc::ServerContextBase& call) const {
  std::optional<std::string> peer = PeerOf(call);
  return peer ? *std::move(peer) : call.peer();
}

}  // namespace muster::broker
