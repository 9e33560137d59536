// Sends a client's token with a call. Private to the client.
#ifndef MUSTER_CLIENTS_CPP_BEARER_H_
#define MUSTER_CLIENTS_CPP_BEARER_H_

#include <grpcpp/client_context.h>

#include <string>

namespace muster::client {

// An empty token is none.
inline void AddBearer(const std::string& token, grpc::ClientContext* context) {
  if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
}

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_BEARER_H_
