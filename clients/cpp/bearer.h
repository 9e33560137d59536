// Sends a client's token with a call. Private to the client.
#ifndef MUSTER_CLIENTS_CPP_BEARER_H_
#define MUSTER_CLIENTS_CPP_BEARER_H_

#include <grpcpp/client_context.h>

#include <string>

#include "clients/cpp/client.h"
#include "clients/cpp/credential.h"

namespace muster::client {

// Returns the token that goes with the call; empty if none.
inline std::string AddBearer(const ClientOptions& options, grpc::ClientContext* context) {
  std::string token = options.credential ? options.credential->Token() : options.token;
  if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
  return token;
}

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_BEARER_H_
